#include "core/simulate/workload_block.h"

#include <cmath>

namespace infrarsi::sim {

Field Block::optional(const std::string& key) const {
    const YamlNode* node = map_.raw(key);
    if (node && node->kind == YamlNode::Kind::null) node = nullptr;
    return {node, field_.path == kFile ? key : field_.path + "." + key};
}

Field Block::required(const std::string& key) const {
    Field field = optional(key);
    if (!field && is_map_) problems_.add(place(), "{} is missing", field.path);
    return field;
}

std::optional<double> Block::finite(const Field& field, const NumberRange& range) const {
    const auto number = read_number(problems_, field, range);
    if (!number || std::isfinite(*number)) return number;
    problems_.add(*field.node, "{} must be a finite number, found {}", field.path, field.node->text);
    return std::nullopt;
}

std::optional<double> Block::read(const std::string& key, const NumberRange& range) const {
    return finite(required(key), range);
}

double Block::number(const std::string& key, const NumberRange& range) const {
    return read(key, range).value_or(0);
}

double Block::number_or(const std::string& key, const NumberRange& range, double fallback) const {
    return finite(optional(key), range).value_or(fallback);
}

std::int64_t Block::whole(const std::string& key, std::int64_t low, std::int64_t high) const {
    return read_integer(problems_, required(key), low, high).value_or(low);
}

std::int64_t Block::whole_or(const std::string& key, std::int64_t low, std::int64_t high, std::int64_t fallback) const {
    return read_integer(problems_, optional(key), low, high).value_or(fallback);
}

bool Block::flag_or(const std::string& key, bool fallback) const {
    return read_flag(problems_, optional(key)).value_or(fallback);
}

std::string Block::text(const std::string& key) const {
    return read_text(problems_, required(key)).value_or("");
}

std::string Block::text_or(const std::string& key, std::string fallback) const {
    return read_text(problems_, optional(key)).value_or(std::move(fallback));
}

std::optional<std::string> Block::mechanism() const {
    return read_text(problems_, optional("mechanism"));
}

std::string Block::name(const std::string& key) const {
    const Field field = required(key);
    const std::string text = read_text(problems_, field).value_or("-");
    const bool is_plain = std::none_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) <= ' ' || std::string_view(",;|=\"").find(c) != std::string_view::npos;
    });
    if (field && (text.empty() || !is_plain)) {
        problems_.add(*field.node, "{} must be a name without blanks, quotes and , ; | =, found \"{}\"", field.path,
                      text);
    }
    return text;
}

std::pair<double, double> Block::interval(const std::string& key, const NumberRange& range) const {
    const Field field = required(key);
    const std::vector<Field> items = read_list(problems_, field);
    if (!field || field.node->kind != YamlNode::Kind::sequence) return {0, 0};
    if (items.size() != 2) {
        problems_.add(*field.node, "{} must be [low, high], found {} items", field.path, items.size());
        return {0, 0};
    }
    const auto low = finite(items[0], range);
    const auto high = finite(items[1], range);
    if (!low || !high) return {0, 0};
    if (*low > *high) problems_.add(*field.node, "{} must have its lower end first", field.path);
    return {*low, *high};
}

std::map<std::string, double> Block::numbers(const Field& field, const NumberRange& range) const {
    std::map<std::string, double> result;
    for (const YamlEntry* entry : read_entries(problems_, field)) {
        const Field item{&entry->value, field.path + "." + entry->key.text};
        result[entry->key.text] = finite(item, range).value_or(0);
    }
    return result;
}

PerPhase Block::factors(const std::string& key) const {
    PerPhase result = kNoEffect;
    const Field field = optional(key);
    if (!field) return result;
    const Block phases(problems_, field, {kPhaseNames.begin(), kPhaseNames.end()});
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
        result[p] = phases.number_or(std::string(kPhaseNames[p]), kNotNegative, 1);
    }
    return result;
}

}  // namespace infrarsi::sim
