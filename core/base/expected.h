#pragma once
// Expected<T>: a value or an Error. tl::expected today (Debian's libstdc++ 12 has no std::expected for C++20), used
// through early return only, so that it can become std::expected with no other edit.

#include <tl/expected.hpp>

#include "core/base/error.h"

namespace infrarsi {

template <class T>
using Expected = tl::expected<T, Error>;

using Unexpected = tl::unexpected<Error>;

namespace detail {
// Carries the caller's place through a format string.
struct FailFormat {
    std::string_view text;
    std::source_location where;
    template <class S>
        requires std::convertible_to<S, std::string_view>
    FailFormat(const S& format, std::source_location at = std::source_location::current()) : text(format), where(at) {}
};
}  // namespace detail

// return fail(ErrorKind::not_found, "cannot read {}: no such file", path);
template <class... Args>
[[nodiscard]] Unexpected fail(ErrorKind kind, detail::FailFormat format, const Args&... args) {
    return Unexpected(Error(kind, fmt::vformat(format.text, fmt::make_format_args(args...)), format.where));
}

template <class... Args>
[[nodiscard]] Unexpected fail_at(ErrorKind kind, Place place, detail::FailFormat format, const Args&... args) {
    return Unexpected(
        Error(kind, fmt::vformat(format.text, fmt::make_format_args(args...)), format.where).at(std::move(place)));
}

// Adds context on the way up: return wrap(std::move(result).error(), "reading the contract");
[[nodiscard]] inline Unexpected wrap(Error error, std::string what) {
    return Unexpected(std::move(error).while_doing(std::move(what)));
}

}  // namespace infrarsi

#define INFRARSI_CONCAT_(a, b) a##b
#define INFRARSI_CONCAT(a, b) INFRARSI_CONCAT_(a, b)

// Returns the error of `expression`, an Expected<T>, from the enclosing function.
#define INFRARSI_TRY(expression)                                                \
    do {                                                                        \
        auto infrarsi_result_ = (expression);                                   \
        if (!infrarsi_result_) {                                                \
            return ::infrarsi::Unexpected(std::move(infrarsi_result_).error()); \
        }                                                                       \
    } while (false)

// INFRARSI_ASSIGN(auto text, read_file(path));
#define INFRARSI_ASSIGN_(temporary, declaration, expression)         \
    auto temporary = (expression);                                   \
    if (!temporary) {                                                \
        return ::infrarsi::Unexpected(std::move(temporary).error()); \
    }                                                                \
    declaration = std::move(*temporary)
#define INFRARSI_ASSIGN(declaration, expression) \
    INFRARSI_ASSIGN_(INFRARSI_CONCAT(infrarsi_value_, __LINE__), declaration, expression)
