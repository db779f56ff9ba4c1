#pragma once
// Amounts as people write them, in infrarsi.yaml and on the command line alike: 90m, 500k, 45.

#include <cstdint>
#include <string_view>

#include "core/base/expected.h"

namespace infrarsi {

enum class BareNumber { hours, refused };

// Seconds from `3600s`, `90m`, `2h`, `1h30m`, `1.5h`, `2d`; more than zero. A number alone is hours (`--wall-hours`) or
// refused, where people would mean seconds. invalid_input.
[[nodiscard]] Expected<double> parse_duration_s(std::string_view text, BareNumber bare);

// `500000`, `500k`, `1.5M`, `2G`: a whole number of at least 1. invalid_input.
[[nodiscard]] Expected<std::int64_t> parse_count(std::string_view text);

// A share as a fraction (0.45) or a percentage (45, `45%`): more than 0, at most 1. invalid_input.
[[nodiscard]] Expected<double> parse_share(std::string_view text);

}  // namespace infrarsi
