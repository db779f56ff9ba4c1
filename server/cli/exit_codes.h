#pragma once
// Exit codes of the program: 0 done, 1 checked and found wanting, the rest by error kind (STYLE §2).

#include "core/base/error.h"

namespace infrarsi {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFoundWanting = 1;

[[nodiscard]] int exit_code_of(ErrorKind kind);

}  // namespace infrarsi
