#pragma once
// SHA-256 and HMAC-SHA256 over OpenSSL. Digests are lower-case hexadecimal, 64 characters.

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace infrarsi {

[[nodiscard]] std::string sha256_hex(std::string_view bytes);

// Streams the file. not_found when it is missing, io when it cannot be read. Cost: about 1.5 GB/s.
[[nodiscard]] Expected<std::string> sha256_file(const std::filesystem::path& path);

[[nodiscard]] std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);

// Compares in constant time, so that a forger learns nothing from the clock.
[[nodiscard]] bool digests_equal(std::string_view a, std::string_view b);

// `bytes` random bytes of the system, as hexadecimal; for keys, nonces and run ids, never for the search.
[[nodiscard]] std::string random_hex(std::size_t bytes);

}  // namespace infrarsi
