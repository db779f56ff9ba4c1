#pragma once
// UTF-8 as bytes: where it is broken, and where code points begin. Everything a person wrote is checked once at the
// edge, so that what follows may count columns without fear.

#include <cstddef>
#include <optional>
#include <string_view>

namespace infrarsi {

// Byte offset of the first byte that is not valid UTF-8 (overlong forms and surrogates are not valid); nothing when all
// is well. O(n).
[[nodiscard]] std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// Length in bytes (1 … 4) of the code point at `offset`; 1 for a byte that starts none, so that a loop always advances.
[[nodiscard]] std::size_t utf8_length(std::string_view text, std::size_t offset);

}  // namespace infrarsi
