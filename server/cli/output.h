#pragma once
// Standard output of the program: whole texts, once.

#include <string_view>

namespace infrarsi {

// Writes all of `text`; a reader that has gone away is no error.
void print_out(std::string_view text);
void print_err(std::string_view text);

// Whether all that print_out was given got through: false on a full disk, say.
[[nodiscard]] bool is_out_complete();

}  // namespace infrarsi
