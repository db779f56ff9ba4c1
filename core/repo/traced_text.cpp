#include "core/repo/traced_text.h"

namespace infrarsi {

TracedText::TracedText(std::string text, int source) : text_(std::move(text)) {
    origins_.reserve(text_.size());
    for (std::size_t i = 0; i < text_.size(); ++i) origins_.push_back({source, static_cast<std::uint32_t>(i)});
}

TracedText TracedText::computed(std::string text, bool known) {
    TracedText result(std::move(text), -1);
    result.known_ = known;
    return result;
}

void TracedText::append(const TracedText& other) {
    text_ += other.text_;
    origins_.insert(origins_.end(), other.origins_.begin(), other.origins_.end());
    known_ = known_ && other.known_;
}

void TracedText::append(char byte, Origin origin) {
    text_.push_back(byte);
    origins_.push_back(origin);
}

TracedText TracedText::part(std::size_t begin, std::size_t end) const {
    TracedText result;
    result.text_ = text_.substr(begin, end - begin);
    result.origins_.assign(origins_.begin() + static_cast<std::ptrdiff_t>(begin),
                           origins_.begin() + static_cast<std::ptrdiff_t>(end));
    result.known_ = known_;
    return result;
}

std::optional<TextSpan> TracedText::span(std::size_t begin, std::size_t end) const {
    if (begin >= end || end > text_.size() || origins_[begin].source < 0) return std::nullopt;
    for (std::size_t i = begin + 1; i < end; ++i) {
        if (origins_[i].source != origins_[begin].source || origins_[i].offset != origins_[i - 1].offset + 1) {
            return std::nullopt;
        }
    }
    return TextSpan{origins_[begin].source, origins_[begin].offset, origins_[end - 1].offset + std::size_t{1}};
}

std::optional<TextSpan> TracedText::outer_span(std::size_t begin, std::size_t end) const {
    if (begin >= end || end > text_.size() || origins_[begin].source < 0) return std::nullopt;
    const Origin first = origins_[begin], last = origins_[end - 1];
    if (last.source != first.source || last.offset < first.offset) return std::nullopt;
    return TextSpan{first.source, first.offset, last.offset + std::size_t{1}};
}

}  // namespace infrarsi
