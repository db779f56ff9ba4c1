#include "core/base/digest.h"

using namespace infrarsi;

TEST_CASE("digests agree with the published vectors", "[base]") {
    // FIPS 180-2 appendix B.1; RFC 4231 test case 2.
    CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(hmac_sha256_hex("Jefe", "what do ya want for nothing?") ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CHECK(random_hex(16).size() == 32);
    CHECK(random_hex(16) != random_hex(16));
}
