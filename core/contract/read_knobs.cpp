#include "core/contract/read_knobs.h"

#include "core/contract/constraint.h"
#include "core/text/nearest.h"

namespace infrarsi {

namespace {

constexpr std::size_t kMostCombinations = 200'000;  // beyond it satisfiability is left to the search

std::string listed(const std::vector<Value>& values) {
    std::string text;
    for (const Value& value : values) text += (text.empty() ? "" : ", ") + to_text(value);
    return text;
}

const Value* find_value(const std::vector<Value>& values, const Value& wanted) {
    for (const Value& value : values) {
        if (same_effect(value, wanted)) return &value;
    }
    return nullptr;
}

// A scalar or null that is legal as a setting.
std::optional<Value> read_value(Problems& problems, const YamlNode& node, const std::string& path) {
    if (node.kind == YamlNode::Kind::sequence || node.kind == YamlNode::Kind::map) {
        problems.add(node, "{} must be a single value, found {}", path, describe(node));
        return std::nullopt;
    }
    return node.value();
}

std::vector<Value> read_values(Problems& problems, const Field& field, const YamlNode& knob_place,
                               const std::string& path) {
    if (!field) {
        problems.add(knob_place, "{} has no values; list what is legal, such as values: [1, 2, 4]", path);
        return {};
    }
    std::vector<Value> values;
    for (const Field& item : read_list(problems, field)) {
        const auto value = read_value(problems, *item.node, item.path);
        if (!value) continue;
        if (const Value* earlier = find_value(values, *value)) {
            problems.add(*item.node, "{}: the value {} stands there already as {}; remove one", path, to_text(*value),
                         to_text(*earlier));
        } else {
            values.push_back(*value);
        }
    }
    if (field.node->kind == YamlNode::Kind::sequence && field.node->items.empty()) {
        problems.add(*field.node, "{}.values is empty; list what is legal, or remove the knob", path);
    }
    return values;
}

bool all_flags(const std::vector<Value>& values) {
    bool any = false;
    for (const Value& value : values) {
        if (is_null(value)) continue;
        if (!std::holds_alternative<bool>(value)) return false;
        any = true;
    }
    return any;
}

class KnobReader {
public:
    KnobReader(Problems& problems, const YamlEntry& entry)
        : problems_(problems),
          entry_(entry),
          path_("knobs." + entry.key.text),
          map_(problems, {entry.value.kind == YamlNode::Kind::null ? nullptr : &entry.value, path_},
               {"flag", "env", "config", "values", "reference", "mechanism", "form"}) {}

    std::optional<Knob> run() {
        if (entry_.value.kind != YamlNode::Kind::map) {
            if (entry_.value.kind == YamlNode::Kind::null) {
                problems_.add(entry_.key, "{} says nothing; write {{flag: --name, values: [...], reference: ...}}",
                              path_);
            }
            return std::nullopt;
        }
        Knob knob;
        knob.name = entry_.key.text;
        knob.line = entry_.key.line;
        check_name();
        read_spelling(knob);
        knob.values = read_values(problems_, map_["values"], entry_.key, path_);
        read_form(knob);
        read_reference(knob);
        read_mechanism(knob);
        return knob;
    }

private:
    void check_name() {
        static const std::vector<std::string> kReserved{"true", "false", "null", "None", "implies", "and", "or", "not"};
        const std::string& name = entry_.key.text;
        if (!is_identifier(name)) {
            problems_.add(entry_.key, "the knob name \"{}\" must be letters, digits and _, since constraints use it",
                          name);
        } else if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end() ||
                   !std::holds_alternative<std::string>(value_from_text(name))) {
            problems_.add(entry_.key, "the knob name {} means something else in constraints; choose another", name);
        }
    }

    void read_spelling(Knob& knob) {
        static const std::vector<std::pair<std::string, KnobKind>> kKinds{
            {"flag", KnobKind::flag}, {"env", KnobKind::env}, {"config", KnobKind::config}};
        int found = 0;
        for (const auto& [key, kind] : kKinds) {
            const Field field = map_[key];
            if (!field) continue;
            ++found;
            const auto text = read_text(problems_, field);
            if (!text) continue;
            knob.kind = kind;
            knob.spelling = *text;
            check_spelling(knob, field);
        }
        if (found == 1) return;
        problems_.add(entry_.key, "{} must have exactly one of flag, env and config, found {}", path_,
                      found == 0 ? "none" : "several");
    }

    void check_spelling(const Knob& knob, const Field& field) {
        const std::string& text = knob.spelling;
        if (knob.kind == KnobKind::env) {
            if (!is_identifier(text))
                problems_.add(*field.node, "{} must be the name of a variable, found \"{}\"", field.path, text);
            return;
        }
        if (knob.kind == KnobKind::flag) {
            const bool dashed = text.starts_with('-') && text.find_first_not_of('-') != std::string::npos;
            if (!dashed || text.find_first_of(" =\t\n\"'") != std::string::npos) {
                problems_.add(*field.node, "{} must be a flag alone, such as --micro-batch-size, found \"{}\"",
                              field.path, text);
            }
            return;
        }
        const auto hash = text.find('#');
        const std::string file = text.substr(0, hash);
        const bool complete = hash != std::string::npos && hash > 0 && hash + 1 < text.size();
        if (!complete) {
            problems_.add(*field.node, "{} must be file#key, such as configs/7b.yaml#model.recompute, found \"{}\"",
                          field.path, text);
        } else if (file.starts_with('/') || ("/" + file + "/").find("/../") != std::string::npos) {
            problems_.add(*field.node, "{}: the file {} must be inside the project, relative to its root", field.path,
                          file);
        }
    }

    void read_form(Knob& knob) {
        const Field field = map_["form"];
        const bool flags = all_flags(knob.values);
        knob.form = knob.kind == KnobKind::flag && flags ? FlagForm::switch_ : FlagForm::value;
        const auto form = read_choice(problems_, field, {"value", "equals", "switch", "negatable"});
        if (!form) return;
        if (knob.kind != KnobKind::flag) {
            problems_.add(*field.node, "{} is for flags; remove it", field.path);
            return;
        }
        for (const FlagForm candidate : {FlagForm::value, FlagForm::equals, FlagForm::switch_, FlagForm::negatable}) {
            if (to_string(candidate) == *form) knob.form = candidate;
        }
        const bool wants_flags = knob.form == FlagForm::switch_ || knob.form == FlagForm::negatable;
        if (wants_flags && !knob.values.empty() && !flags) {
            problems_.add(*field.node,
                          "{}: a flag of the form {} can only be true, false or null, but the values are {}", path_,
                          *form, listed(knob.values));
        }
    }

    void read_reference(Knob& knob) {
        if (knob.values.empty()) return;
        const YamlNode* node = map_.raw("reference");
        if (!node) {
            if (find_value(knob.values, Value{})) return;  // null: not set today
            problems_.add(entry_.key, "{} has no reference; write what the job uses today, reference: {}", path_,
                          listed(knob.values).find(',') == std::string::npos ? listed(knob.values)
                                                                             : "one of " + listed(knob.values));
            return;
        }
        const auto value = read_value(problems_, *node, path_ + ".reference");
        if (!value) return;
        const Value* legal = find_value(knob.values, *value);
        if (!legal) {
            problems_.add(*node, "{}.reference {} is not among the values {}; add it there", path_, to_text(*value),
                          listed(knob.values));
            return;
        }
        knob.reference = *legal;
    }

    void read_mechanism(Knob& knob) {
        const Field field = map_["mechanism"];
        const auto text = read_text(problems_, field);
        if (!text) return;
        const auto ok = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; };
        if (text->empty() || !std::all_of(text->begin(), text->end(), ok)) {
            problems_.add(*field.node, "{} must be a mechanism id such as batch.micro_batch, found \"{}\"", field.path,
                          *text);
        }
        knob.mechanism = *text;
    }

    Problems& problems_;
    const YamlEntry& entry_;
    std::string path_;
    MapReader map_;
};

// Place inside a constraint's own text: exact when it stands on one line without escapes.
Place place_in(const Problems& problems, const YamlNode& node, int column) {
    return {problems.file(), node.line, node.column + (node.quoted ? 1 : 0) + std::max(column, 1) - 1};
}

std::vector<std::string> knob_names(const Contract& contract) {
    std::vector<std::string> names;
    for (const Knob& knob : contract.knobs) names.push_back(knob.name);
    return names;
}

// Whether every name means something.
bool check_names(Problems& problems, const Field& item, const Constraint& constraint, const Contract& contract) {
    bool known = true;
    const auto report = [&](int column, std::string message) {
        known = false;
        problems.add_error(
            Error(ErrorKind::invalid_input, std::move(message)).at(place_in(problems, *item.node, column)));
    };
    for (const auto& name : constraint.names()) {
        if (contract.knob(name)) continue;
        std::string hint = did_you_mean(name, knob_names(contract));
        if (hint.empty()) hint = "; put quotes around it if it is text";
        report(constraint.column_of(name), fmt::format("\"{}\": there is no knob {}{}", constraint.text(), name, hint));
    }
    for (const auto& word : constraint.words()) {
        const Knob* compared = contract.knob(word.compared_with);
        if (contract.knob(word.word) || !compared || find_value(compared->values, Value{word.word})) continue;
        std::vector<std::string> candidates = knob_names(contract);
        for (const Value& value : compared->values) candidates.push_back(to_text(value));
        report(word.column,
               fmt::format("\"{}\": {} is neither a knob nor a value of {} ({}){}", constraint.text(), word.word,
                           compared->name, listed(compared->values), did_you_mean(word.word, candidates)));
    }
    return known;
}

struct ReadConstraint {
    Field item;
    Constraint constraint;
};

// Whether some combination of legal values meets all; nothing when there are too many to try.
std::optional<bool> satisfiable(const Contract& contract, const std::vector<ReadConstraint>& all) {
    std::set<std::string> names;
    for (const auto& [item, constraint] : all) {
        names.insert(constraint.names().begin(), constraint.names().end());
        for (const auto& word : constraint.words()) {
            if (contract.knob(word.word)) names.insert(word.word);
        }
    }
    std::vector<const Knob*> knobs;
    std::size_t combinations = 1;
    for (const auto& name : names) {
        knobs.push_back(contract.knob(name));
        combinations *= std::max<std::size_t>(knobs.back()->values.size(), 1);
        if (combinations > kMostCombinations) return std::nullopt;
    }
    Settings settings = contract.reference_settings();
    for (std::size_t number = 0; number < combinations; ++number) {
        std::size_t rest = number;
        for (const Knob* knob : knobs) {
            settings[knob->name] = knob->values[rest % knob->values.size()];
            rest /= knob->values.size();
        }
        const bool all_hold = std::all_of(all.begin(), all.end(), [&](const ReadConstraint& read) {
            const auto holds = read.constraint.holds(settings);
            return holds && *holds;
        });
        if (all_hold) return true;
    }
    return false;
}

std::string settings_of(const Constraint& constraint, const Contract& contract) {
    Settings used;
    for (const auto& name : constraint.names()) {
        if (const Knob* knob = contract.knob(name)) used[name] = knob->reference;
    }
    return describe(used);
}

void check_meaning(Problems& problems, const Contract& contract, const std::vector<ReadConstraint>& all) {
    bool broken = false;
    for (const auto& [item, constraint] : all) {
        const auto holds = constraint.holds(contract.reference_settings());
        if (!holds) {
            const int column = holds.error().place() ? holds.error().place()->column : 1;
            problems.add_error(
                Error(ErrorKind::invalid_input, fmt::format("\"{}\": {}", constraint.text(), holds.error().message()))
                    .at(place_in(problems, *item.node, column)));
            return;
        }
        broken |= !*holds;
    }
    if (!broken) return;
    if (satisfiable(contract, all) == false) {
        const ReadConstraint* culprit = nullptr;
        for (const auto& read : all) {
            if (!culprit && satisfiable(contract, {read}) == false) culprit = &read;
        }
        problems.add(culprit ? *culprit->item.node : *all.front().item.node,
                     "no combination of the knobs' values meets {}; widen the values or drop a constraint",
                     culprit ? fmt::format("\"{}\"", culprit->constraint.text()) : "all constraints together");
        return;
    }
    for (const auto& [item, constraint] : all) {
        if (*constraint.holds(contract.reference_settings())) continue;
        problems.add(*item.node,
                     "the reference itself breaks \"{}\" ({}); correct the constraint or the reference values",
                     constraint.text(), settings_of(constraint, contract));
    }
}

}  // namespace

std::vector<Knob> read_knobs(Problems& problems, const Field& field) {
    std::vector<Knob> knobs;
    std::map<std::string, std::string> by_spelling, batch_mechanisms;
    for (const YamlEntry* entry : read_entries(problems, field)) {
        auto knob = KnobReader(problems, *entry).run();
        if (!knob) continue;
        if (!knob->spelling.empty()) {
            const auto [other, is_new] = by_spelling.try_emplace(knob->spelling, knob->name);
            if (!is_new)
                problems.add(entry->key, "the knobs {} and {} are both {}; keep one", other->second, knob->name,
                             knob->spelling);
        }
        const std::string& id = knob->mechanism;
        const std::string short_id = id.starts_with("batch.") ? id.substr(6) : id;
        if (short_id == "micro_batch" || short_id == "grad_accum") {
            const auto [other, is_new] = batch_mechanisms.try_emplace(short_id, knob->name);
            if (!is_new) {
                problems.add(entry->key,
                             "the knobs {} and {} are both the mechanism {}, which batch conservation would count "
                             "twice; keep one",
                             other->second, knob->name, id);
            }
        }
        knobs.push_back(std::move(*knob));
    }
    return knobs;
}

std::vector<std::string> read_constraints(Problems& problems, const Field& field, const Contract& contract) {
    std::vector<std::string> texts;
    std::vector<ReadConstraint> sound;
    bool names_known = true;
    for (const Field& item : read_list(problems, field)) {
        const auto text = read_text(problems, item);
        if (!text) continue;
        texts.push_back(*text);
        auto constraint = Constraint::parse(*text);
        if (!constraint) {
            const int column = constraint.error().place() ? constraint.error().place()->column : 1;
            problems.add_error(
                Error(ErrorKind::invalid_input, fmt::format("\"{}\": {}", *text, constraint.error().message()))
                    .at(place_in(problems, *item.node, column)));
            continue;
        }
        names_known &= check_names(problems, item, *constraint, contract);
        sound.push_back({item, std::move(*constraint)});
    }
    const bool all_have_values = std::none_of(contract.knobs.begin(), contract.knobs.end(),
                                              [](const Knob& knob) { return knob.values.empty(); });
    if (names_known && all_have_values && !sound.empty()) check_meaning(problems, contract, sound);
    return texts;
}

}  // namespace infrarsi
