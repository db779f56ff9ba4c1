#pragma once
// Errors as values. Every function that can fail for a reason outside this program returns Expected<T>; the Error says
// what was attempted, on what, why it failed and what to do (STYLE §2). Exceptions of libraries are turned into Errors
// at the edge of the module that calls them.

#include <fmt/format.h>

#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace infrarsi {

// Closed set. The exit code of the program follows from the kind (server/cli/exit_codes.h).
enum class ErrorKind {
    invalid_input,  // the user's text is wrong; has a place
    not_found,      // missing file, run, candidate
    conflict,       // newer text, working tree moved, lock held
    frozen,         // would touch a frozen file
    unsupported,    // stack, platform or client lacks it
    cancelled,      // someone asked to stop
    timeout,        // a limit was reached; the message says which
    resource,       // memory, disk, GPU, budget
    io,             // the system said no; has the errno text
    corrupt,        // journal, receipt or lock does not verify; names the line
    internal        // our mistake
};

[[nodiscard]] std::string_view to_string(ErrorKind kind);

// A place in a person's text: 1-based line and column, 0 when unknown.
struct Place {
    std::string path;
    int line = 0;
    int column = 0;

    bool operator==(const Place&) const = default;
};

// `path:line:column`, leaving out what is unknown.
[[nodiscard]] std::string to_string(const Place& place);

class Error {
public:
    Error(ErrorKind kind, std::string message, std::source_location where = std::source_location::current());

    [[nodiscard]] ErrorKind kind() const { return kind_; }
    [[nodiscard]] const std::string& message() const { return message_; }
    [[nodiscard]] const std::optional<Place>& place() const { return place_; }
    [[nodiscard]] const std::vector<std::string>& context() const { return context_; }
    [[nodiscard]] const std::source_location& where() const { return where_; }

    // Both return *this, so that they chain in a return statement.
    Error&& at(Place place) &&;
    Error&& while_doing(std::string what) &&;  // outermost last

    // One line for a person: `place: message (while …)`.
    [[nodiscard]] std::string describe() const;

private:
    ErrorKind kind_;
    std::string message_;
    std::optional<Place> place_;
    std::vector<std::string> context_;
    std::source_location where_;
};

// errno as text, for `io` errors.
[[nodiscard]] std::string errno_text(int error_number);
// not_found for ENOENT, resource where the disk or the quota is full, else io.
[[nodiscard]] ErrorKind errno_kind(int error_number);

[[noreturn]] void check_failed(const char* condition, const char* sentence, std::source_location where);

// For our own mistakes only, never for input.
#define INFRARSI_CHECK(condition, sentence) \
    ((condition) ? void(0) : ::infrarsi::check_failed(#condition, sentence, std::source_location::current()))

}  // namespace infrarsi
