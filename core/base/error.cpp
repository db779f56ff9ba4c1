#include "core/base/error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace infrarsi {

std::string_view to_string(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::invalid_input: return "invalid_input";
        case ErrorKind::not_found: return "not_found";
        case ErrorKind::conflict: return "conflict";
        case ErrorKind::frozen: return "frozen";
        case ErrorKind::unsupported: return "unsupported";
        case ErrorKind::cancelled: return "cancelled";
        case ErrorKind::timeout: return "timeout";
        case ErrorKind::resource: return "resource";
        case ErrorKind::io: return "io";
        case ErrorKind::corrupt: return "corrupt";
        case ErrorKind::internal: return "internal";
    }
    return "internal";
}

std::string to_string(const Place& place) {
    std::string text = place.path;
    if (place.line > 0) {
        text += fmt::format("{}{}", text.empty() ? "" : ":", place.line);
        if (place.column > 0) text += fmt::format(":{}", place.column);
    }
    return text;
}

Error::Error(ErrorKind kind, std::string message, std::source_location where)
    : kind_(kind), message_(std::move(message)), where_(where) {}

Error&& Error::at(Place place) && {
    if (!place_) {
        place_ = std::move(place);  // the innermost place is the one that helps
    } else if (place_->path.empty()) {
        place_->path = std::move(place.path);  // whoever read text alone knew the line, not the file
    }
    return std::move(*this);
}

Error&& Error::while_doing(std::string what) && {
    context_.push_back(std::move(what));
    return std::move(*this);
}

std::string Error::describe() const {
    std::string text;
    if (place_) text = to_string(*place_) + ": ";
    text += message_;
    for (const auto& what : context_) text += fmt::format(" (while {})", what);
    return text;
}

std::string errno_text(int error_number) {
    return std::generic_category().message(error_number);
}

ErrorKind errno_kind(int error_number) {
    switch (error_number) {
        case ENOENT: return ErrorKind::not_found;
        case ENOSPC:
        case EDQUOT: return ErrorKind::resource;
        default: return ErrorKind::io;
    }
}

void check_failed(const char* condition, const char* sentence, std::source_location where) {
    std::fprintf(stderr, "infrarsi: internal error: %s [%s] at %s:%u\n", sentence, condition, where.file_name(),
                 where.line());
    std::abort();
}

}  // namespace infrarsi
