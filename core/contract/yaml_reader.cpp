#include "core/contract/yaml_reader.h"

#include <cmath>

#include "core/text/nearest.h"

namespace infrarsi {

namespace {

void wrong_type(Problems& problems, const Field& field, std::string_view wanted) {
    problems.add(*field.node, "{} must be {}, found {}", field.path, wanted, describe(*field.node));
}

// The raw characters of a scalar: quantities such as 90m are neither number nor text to YAML.
std::optional<std::string> scalar_text(Problems& problems, const Field& field, std::string_view wanted) {
    if (!field) return std::nullopt;
    if (field.node->kind == YamlNode::Kind::scalar) return field.node->text;
    wrong_type(problems, field, wanted);
    return std::nullopt;
}

template <class T>
std::optional<T> or_report(Problems& problems, const Field& field, const Expected<T>& result) {
    if (result) return *result;
    problems.add(*field.node, "{}: {}", field.path, result.error().message());
    return std::nullopt;
}

std::string number_text(double number) {
    return std::abs(number) >= 1e15 ? fmt::format("{:g}", number) : fmt::format("{}", number);
}

}  // namespace

void Problems::add_unknown_key(const YamlNode& key, const std::string& sentence) {
    unknown_keys_.push_back(Error(ErrorKind::invalid_input, sentence).at(key.place(file_)));
}

std::vector<Error> Problems::take() {
    std::vector<Error> all;
    for (auto* errors : {&unknown_keys_, &errors_}) {
        // By place and then by time of finding: a map keeps both without moving errors about.
        std::multimap<std::pair<int, int>, Error> by_place;
        for (Error& error : *errors) {
            const Place place = error.place().value_or(Place{});
            by_place.emplace(std::pair(place.line, place.column), std::move(error));
        }
        errors->clear();
        for (auto& [place, error] : by_place) all.push_back(std::move(error));
    }
    return all;
}

std::vector<const YamlEntry*> read_entries(Problems& problems, const Field& field) {
    std::vector<const YamlEntry*> entries;
    if (!field) return entries;
    if (field.node->kind != YamlNode::Kind::map) {
        wrong_type(problems, field, "a mapping");
        return entries;
    }
    std::map<std::string_view, int> lines;
    for (const auto& entry : field.node->entries) {
        const auto [first, is_new] = lines.try_emplace(entry.key.text, entry.key.line);
        if (is_new) {
            entries.push_back(&entry);
        } else {
            problems.add(entry.key, "the key {} stands twice in {} (first on line {}); remove one", entry.key.text,
                         field.path, first->second);
        }
    }
    return entries;
}

MapReader::MapReader(Problems& problems, const Field& field, std::vector<std::string> known)
    : place_(field.node), path_(field.path) {
    if (!field) return;
    for (const YamlEntry* entry : read_entries(problems, field)) {
        const std::string& key = entry->key.text;
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        std::string hint = did_you_mean(key, known);
        if (hint.empty()) hint = fmt::format("; known here: {}", fmt::join(known, ", "));
        if (key == "<<") hint = "; merge keys are not read, write the keys out";
        problems.add_unknown_key(entry->key, fmt::format("unknown key {} in {}{}", key, path_, hint));
    }
    if (field.node->kind == YamlNode::Kind::map) map_ = field.node;
}

const YamlNode* MapReader::raw(const std::string& key) const {
    return map_ ? map_->find(key) : nullptr;
}

Field MapReader::operator[](const std::string& key) const {
    const YamlNode* node = raw(key);
    if (node && node->kind == YamlNode::Kind::null) node = nullptr;
    return {node, path_ == "infrarsi.yaml" ? key : path_ + "." + key};
}

std::optional<std::string> read_text(Problems& problems, const Field& field) {
    if (!field) return std::nullopt;
    const Value value = field.node->value();
    if (field.node->kind != YamlNode::Kind::scalar) {
        wrong_type(problems, field, "text");
    } else if (!std::holds_alternative<std::string>(value)) {
        problems.add(*field.node, "{} must be text, found {}; put it in quotes if it is meant", field.path,
                     describe(*field.node));
    } else {
        return std::get<std::string>(value);
    }
    return std::nullopt;
}

std::optional<std::string> read_choice(Problems& problems, const Field& field,
                                       const std::vector<std::string>& choices) {
    const auto text = scalar_text(problems, field, one_of(choices));
    if (!text) return std::nullopt;
    if (std::find(choices.begin(), choices.end(), *text) != choices.end()) return text;
    problems.add(*field.node, "{} must be {}, found {}{}", field.path, one_of(choices), describe(*field.node),
                 did_you_mean(*text, choices));
    return std::nullopt;
}

std::optional<std::int64_t> read_integer(Problems& problems, const Field& field, std::int64_t low, std::int64_t high) {
    if (!field) return std::nullopt;
    const Value value = field.node->value();
    const auto* number = std::get_if<std::int64_t>(&value);
    if (!number) {
        wrong_type(problems, field, "a whole number");
    } else if (*number < low || *number > high) {
        problems.add(*field.node, "{} must be between {} and {}, found {}", field.path, low, high, *number);
    } else {
        return *number;
    }
    return std::nullopt;
}

std::optional<bool> read_flag(Problems& problems, const Field& field) {
    if (!field) return std::nullopt;
    const Value value = field.node->value();
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    wrong_type(problems, field, "true or false");
    return std::nullopt;
}

std::optional<double> read_number(Problems& problems, const Field& field, const NumberRange& range) {
    if (!field) return std::nullopt;
    const Value value = field.node->value();
    const auto number = std::holds_alternative<bool>(value) ? std::nullopt : to_number(value);
    if (!number) {
        wrong_type(problems, field, "a number");
        return std::nullopt;
    }
    const bool inside = (*number > range.low || (range.low_included && *number == range.low)) && *number <= range.high;
    if (inside) return number;
    const std::string top = std::isinf(range.high) ? "" : fmt::format(" and at most {}", number_text(range.high));
    problems.add(*field.node, "{} must be {} {}{}, found {}", field.path, range.low_included ? "at least" : "more than",
                 number_text(range.low), top, to_text(value));
    return std::nullopt;
}

std::optional<double> read_duration(Problems& problems, const Field& field, BareNumber bare) {
    const auto text = scalar_text(problems, field, "a duration such as 90m");
    return text ? or_report(problems, field, parse_duration_s(*text, bare)) : std::nullopt;
}

std::optional<std::int64_t> read_count(Problems& problems, const Field& field) {
    const auto text = scalar_text(problems, field, "a count such as 500k");
    return text ? or_report(problems, field, parse_count(*text)) : std::nullopt;
}

std::optional<double> read_share(Problems& problems, const Field& field) {
    const auto text = scalar_text(problems, field, "a share such as 0.45");
    return text ? or_report(problems, field, parse_share(*text)) : std::nullopt;
}

std::vector<Field> read_list(Problems& problems, const Field& field) {
    std::vector<Field> items;
    if (!field) return items;
    if (field.node->kind != YamlNode::Kind::sequence) {
        problems.add(*field.node, "{} must be a list, found {}; write it as [a, b]", field.path, describe(*field.node));
        return items;
    }
    for (std::size_t i = 0; i < field.node->items.size(); ++i) {
        items.push_back({&field.node->items[i], fmt::format("{}[{}]", field.path, i)});
    }
    return items;
}

std::vector<std::string> read_texts(Problems& problems, const Field& field) {
    std::vector<std::string> texts;
    for (const Field& item : read_list(problems, field)) {
        if (auto text = read_text(problems, item)) {
            if (text->find_first_not_of(" \t\n") == std::string::npos) {
                problems.add(*item.node, "{} is empty; remove it or write it", item.path);
            } else {
                texts.push_back(std::move(*text));
            }
        }
    }
    return texts;
}

bool is_word(const Field& field, std::string_view word) {
    return field && field.node->kind == YamlNode::Kind::scalar && field.node->text == word;
}

bool is_identifier(std::string_view text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    if (text.empty() || !letter(text.front())) return false;
    return std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string one_of(const std::vector<std::string>& choices) {
    std::string text;
    for (std::size_t i = 0; i < choices.size(); ++i) {
        text += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
    }
    return text;
}

}  // namespace infrarsi
