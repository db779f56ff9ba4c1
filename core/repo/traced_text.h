#pragma once
// Text that remembers where each of its bytes was written. A launch line is assembled from variables, arrays and
// defaults; with the origin of every byte kept, the value of a flag can be edited where a person wrote it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace infrarsi {

// A range of bytes in one source of a launch plan.
struct TextSpan {
    int source = -1;
    std::size_t begin = 0, end = 0;

    bool operator==(const TextSpan&) const = default;
};

struct Origin {
    std::int32_t source = -1;  // −1: computed, written nowhere
    std::uint32_t offset = 0;
};

class TracedText {
public:
    TracedText() = default;
    // All of `text` as source `source`.
    TracedText(std::string text, int source);
    // Written nowhere: the result of arithmetic, a working directory, a part that could not be evaluated.
    [[nodiscard]] static TracedText computed(std::string text, bool known = true);

    void append(const TracedText& other);
    void append(char byte, Origin origin);
    [[nodiscard]] TracedText part(std::size_t begin, std::size_t end) const;

    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] Origin origin(std::size_t index) const { return origins_[index]; }
    // False when some part (a command's output, the caller's environment) is not known before the job runs.
    [[nodiscard]] bool known() const { return known_; }
    void set_unknown() { known_ = false; }

    // Where bytes begin … end were written when they stand together in one place; nothing when they were put together,
    // computed, or are empty.
    [[nodiscard]] std::optional<TextSpan> span(std::size_t begin, std::size_t end) const;
    [[nodiscard]] std::optional<TextSpan> span() const { return span(0, text_.size()); }
    // From the first byte's place to the last's, where what lies between may differ (a quoted word with escapes).
    [[nodiscard]] std::optional<TextSpan> outer_span(std::size_t begin, std::size_t end) const;

private:
    std::string text_;
    std::vector<Origin> origins_;
    bool known_ = true;
};

}  // namespace infrarsi
