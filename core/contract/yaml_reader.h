#pragma once
// Reading a YAML tree against a schema while collecting every problem, not only the first: an editor shows them all.
// Used by core/contract and, for workload files, by core/simulate.

#include <optional>
#include <string>
#include <vector>

#include "core/base/yaml_node.h"
#include "core/contract/quantities.h"

namespace infrarsi {

// A value in the file and how sentences call it (`search.budget.screens`). No node: not written, or null.
struct Field {
    const YamlNode* node = nullptr;
    std::string path;

    explicit operator bool() const { return node != nullptr; }
};

class Problems {
public:
    explicit Problems(std::string file) : file_(std::move(file)) {}

    template <class... Args>
    void add(const YamlNode& at, detail::FailFormat format, const Args&... args) {
        add_error(
            Error(ErrorKind::invalid_input, fmt::vformat(format.text, fmt::make_format_args(args...)), format.where)
                .at(at.place(file_)));
    }
    void add_error(Error error) { errors_.push_back(std::move(error)); }
    // A key that is not known: what else is wrong may only follow from it.
    void add_unknown_key(const YamlNode& key, const std::string& sentence);

    [[nodiscard]] const std::string& file() const { return file_; }
    // Unknown keys first, then by place.
    [[nodiscard]] std::vector<Error> take();

private:
    std::string file_;
    std::vector<Error> unknown_keys_, errors_;
};

// A mapping with a closed set of keys. Reports duplicates, unknown keys (with the nearest known one) and a value that
// is no mapping, in which case every field is missing.
class MapReader {
public:
    MapReader(Problems& problems, const Field& field, std::vector<std::string> known);

    [[nodiscard]] Field operator[](const std::string& key) const;  // null counts as missing
    [[nodiscard]] const YamlNode* raw(const std::string& key) const;
    [[nodiscard]] const YamlNode& place() const { return *place_; }

private:
    const YamlNode* map_ = nullptr;
    const YamlNode* place_ = nullptr;
    std::string path_;
};

// Entries of a mapping with free keys (knobs, env, targets), duplicates reported and dropped.
[[nodiscard]] std::vector<const YamlEntry*> read_entries(Problems& problems, const Field& field);

// Each reports a wrong type ("must be text, found a list") or a value out of range, and gives nothing then or when the
// field is missing.
[[nodiscard]] std::optional<std::string> read_text(Problems& problems, const Field& field);
[[nodiscard]] std::optional<std::string> read_choice(Problems& problems, const Field& field,
                                                     const std::vector<std::string>& choices);
[[nodiscard]] std::optional<std::int64_t> read_integer(Problems& problems, const Field& field, std::int64_t low,
                                                       std::int64_t high);
[[nodiscard]] std::optional<bool> read_flag(Problems& problems, const Field& field);

struct NumberRange {
    double low = 0, high = 0;
    bool low_included = true;
};
[[nodiscard]] std::optional<double> read_number(Problems& problems, const Field& field, const NumberRange& range);

[[nodiscard]] std::optional<double> read_duration(Problems& problems, const Field& field, BareNumber bare);
[[nodiscard]] std::optional<std::int64_t> read_count(Problems& problems, const Field& field);
[[nodiscard]] std::optional<double> read_share(Problems& problems, const Field& field);

// Items of a list, each with its path (`constraints[2]`); a value that is no list is reported.
[[nodiscard]] std::vector<Field> read_list(Problems& problems, const Field& field);
[[nodiscard]] std::vector<std::string> read_texts(Problems& problems, const Field& field);

[[nodiscard]] bool is_word(const Field& field, std::string_view word);  // an unquoted `auto`, `strict`

// [A-Za-z_][A-Za-z0-9_]*
[[nodiscard]] bool is_identifier(std::string_view text);

// "a, b or c".
[[nodiscard]] std::string one_of(const std::vector<std::string>& choices);

}  // namespace infrarsi
