#include "core/base/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace infrarsi {

namespace {

std::string to_hex(const unsigned char* bytes, std::size_t count) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text(2 * count, '0');
    for (std::size_t i = 0; i < count; ++i) {
        text[2 * i] = kDigits[bytes[i] >> 4];
        text[2 * i + 1] = kDigits[bytes[i] & 15];
    }
    return text;
}

struct ContextFree {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, ContextFree>;

std::string finish(const Context& context) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned int count = 0;
    INFRARSI_CHECK(EVP_DigestFinal_ex(context.get(), bytes.data(), &count) == 1, "SHA-256 must not fail");
    return to_hex(bytes.data(), count);
}

Context start() {
    Context context(EVP_MD_CTX_new());
    INFRARSI_CHECK(context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1,
                   "OpenSSL must have SHA-256");
    return context;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
    const Context context = start();
    EVP_DigestUpdate(context.get(), bytes.data(), bytes.size());
    return finish(context);
}

Expected<std::string> sha256_file(const std::filesystem::path& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
    if (!file) {
        const int error = errno;
        return fail(error == ENOENT ? ErrorKind::not_found : ErrorKind::io, "cannot read {}: {}", path.string(),
                    errno_text(error));
    }
    const Context context = start();
    std::array<char, 1 << 16> buffer{};
    while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
        EVP_DigestUpdate(context.get(), buffer.data(), count);
    }
    if (std::ferror(file.get())) return fail(ErrorKind::io, "cannot read {}: {}", path.string(), errno_text(errno));
    return finish(context);
}

std::string hmac_sha256_hex(std::string_view key, std::string_view bytes) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
    unsigned int count = 0;
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    INFRARSI_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), data, bytes.size(), mac.data(), &count),
                   "OpenSSL must have HMAC");
    return to_hex(mac.data(), count);
}

bool digests_equal(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    unsigned char difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
    return difference == 0;
}

std::string random_hex(std::size_t bytes) {
    std::string buffer(bytes, '\0');
    auto* data = reinterpret_cast<unsigned char*>(buffer.data());
    INFRARSI_CHECK(RAND_bytes(data, static_cast<int>(bytes)) == 1, "the system must give random bytes");
    return to_hex(data, bytes);
}

}  // namespace infrarsi
