#include "core/repo/launch_edit.h"

#include "core/base/files.h"
#include "core/repo/config_file.h"

namespace infrarsi {
namespace {

constexpr std::size_t kLargestFile = 16u << 20;

bool needs_quotes(std::string_view text) {
    if (text.empty()) return true;
    return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-@%^") !=
           std::string_view::npos;
}

std::string quote(std::string_view text) {
    if (!needs_quotes(text)) return std::string(text);
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

// Booleans as Python reads them: literal_eval and HfArgumentParser take "True", and lower case where it stood before.
std::string flag_text(const Value& value, std::string_view before = {}) {
    if (const auto* flag = std::get_if<bool>(&value)) {
        const bool lower = before == "true" || before == "false";
        if (before == "0" || before == "1") return *flag ? "1" : "0";
        return *flag ? (lower ? "true" : "True") : (lower ? "false" : "False");
    }
    return to_text(value);
}

std::string negated(const std::string& flag) {
    return "--no-" + flag.substr(flag.starts_with("--") ? 2 : 0);
}

bool is_off(const Knob& knob, const Value& value) {
    return is_null(value) || (knob.form == FlagForm::switch_ && same_effect(value, Value{false}));
}

// The same for a job: an absent switch is false.
bool same_setting(const Knob& knob, const Value& a, const Value& b) {
    return same_effect(a, b) || (knob.kind == KnobKind::flag && is_off(knob, a) && is_off(knob, b));
}

// Where to cut so that no stray separators stay: the words and the white space (or continuation) before them.
std::size_t cut_begin(const std::string& text, std::size_t begin) {
    std::size_t at = begin;
    while (at > 0 && (std::isspace(static_cast<unsigned char>(text[at - 1])) != 0 ||
                      (text[at - 1] == '\\' && at < text.size() && text[at] == '\n'))) {
        --at;
    }
    return at;
}

class LaunchEditor {
public:
    LaunchEditor(const Contract& contract, const std::filesystem::path& root, const Settings& wanted,
                 std::map<std::string, std::string> overlay)
        : contract_(contract), wanted_(wanted) {
        request_.overlay = std::move(overlay);
        request_.root = root;
        request_.cwd = contract.launch.cwd;
        request_.command = contract.launch.command;
        request_.env = contract.launch.env;
    }

    Expected<LaunchEdit> run() {
        bool launches = false;
        for (const auto& [name, value] : wanted_) {
            const Knob* knob = contract_.knob(name);
            if (knob == nullptr) return fail(ErrorKind::invalid_input, "{} is not a knob of this contract", name);
            launches = launches || knob->kind != KnobKind::config;
        }
        if (launches) {
            INFRARSI_ASSIGN(plan_, read_launch(request_));
            original_ = plan_;
        }
        // A later edit can move what an earlier one set, when both hang on one variable.
        // What is written out goes first: what is computed from it may then be right by itself.
        for (int pass = 0; pass < 4; ++pass) {
            changed_ = false;
            for (const bool written : {true, false}) {
                for (const auto& [name, value] : wanted_) {
                    const Knob& knob = *contract_.knob(name);
                    if (is_written(knob) == written) INFRARSI_TRY(set(knob, value));
                }
            }
            if (!changed_) break;
        }
        for (const auto& [name, value] : wanted_) {
            const Knob& knob = *contract_.knob(name);
            if (knob.kind != KnobKind::config && !holds(knob, value)) {
                return fail(ErrorKind::invalid_input,
                            "{} ({}) could not be set to {} without changing another argument of the launch line: it "
                            "stays {}; write {} on the launch line by itself",
                            knob.name, knob.spelling, to_text(value), to_text(current(knob)), knob.spelling);
            }
        }
        return finish();
    }

private:
    Expected<void> set(const Knob& knob, const Value& value) {
        if (knob.kind == KnobKind::config) return set_config_knob(knob, value);
        const Value before = current(knob);
        if (holds(knob, value)) return {};
        const LaunchPlan plan_before = plan_;
        INFRARSI_TRY(knob.kind == KnobKind::flag ? set_flag(knob, value) : set_env(knob, value));
        changed_ = true;
        record(knob, plan_before, before, value);
        return {};
    }

    // What holds now; an absent flag or variable means the reference unless the job spelled it at first, and an absent
    // switch is off.
    Value current(const Knob& knob) const {
        if (auto value = spelled_value(plan_, knob)) return *value;
        if (knob.kind == KnobKind::flag && knob.form == FlagForm::switch_) return Value{false};
        return spelled_value(original_, knob) ? Value{} : knob.reference;
    }

    bool holds(const Knob& knob, const Value& value) const {
        if (is_null(value) && !spelled_value(plan_, knob)) return true;
        return same_setting(knob, current(knob), value);
    }

    // True when the flag's value stands somewhere as text, rather than being computed from other variables.
    bool is_written(const Knob& knob) const {
        if (knob.kind != KnobKind::flag) return true;
        const auto use = find_flag(plan_, knob.spelling);
        if (!use || !use->has_value) return true;
        const TracedText& word = plan_.arguments[use->word + (use->equals ? 0 : 1)].value;
        return word.span(use->value_at, word.text().size()).has_value();
    }

    // ── edits, each tried on a copy and read back ──

    struct Attempt {
        TextSpan place;
        std::string text;
    };

    LaunchRequest edited(const Attempt& attempt) const {
        LaunchRequest request = request_;
        const LaunchSource& source = plan_.sources[static_cast<std::size_t>(attempt.place.source)];
        std::string text = source.text;
        text.replace(attempt.place.begin, attempt.place.end - attempt.place.begin, attempt.text);
        if (source.path.empty()) {
            request.command = std::move(text);
        } else {
            request.overlay[source.path] = std::move(text);
        }
        return request;
    }

    // Takes the edit when the knob then holds `value` and nothing else moved.
    bool take(const Attempt& attempt, const Knob& knob, const Value& value) {
        if (attempt.place.source < 0) return false;
        const LaunchSource& source = plan_.sources[static_cast<std::size_t>(attempt.place.source)];
        if (source.path.starts_with("/")) return false;  // outside the project
        LaunchRequest request = edited(attempt);
        auto plan = read_launch(request);
        if (!plan) return false;
        const auto now = spelled_value(*plan, knob);
        const bool holds = now ? same_setting(knob, *now, value) : is_off(knob, value);
        if (!holds || !others_same(*plan, knob)) return false;
        request_ = std::move(request);
        plan_ = std::move(*plan);
        return true;
    }

    // Arguments but for this knob's own, with values of other knobs that are just what is wanted left out.
    std::vector<std::string> others(const LaunchPlan& plan, const Knob& knob) const {
        std::vector<bool> skip(plan.arguments.size(), false);
        const auto leave_out = [&](const Knob& item) {
            for (const std::string& flag : {item.spelling, negated(item.spelling)}) {
                LaunchPlan rest = plan;
                while (const auto use = find_flag(rest, flag)) {
                    skip[use->word] = true;
                    if (takes_word(item, *use)) skip[use->word + 1] = true;
                    rest.arguments[use->word].value = TracedText::computed("");
                }
            }
        };
        if (knob.kind == KnobKind::flag) leave_out(knob);
        for (const auto& [name, value] : wanted_) {
            const Knob& item = *contract_.knob(name);
            if (item.kind != KnobKind::flag) continue;
            const auto now = spelled_value(plan, item);
            if (now && same_setting(item, *now, value)) leave_out(item);
        }
        std::vector<std::string> result;
        for (std::size_t i = 0; i < plan.arguments.size(); ++i) {
            if (!skip[i]) result.push_back(plan.arguments[i].value.text());
        }
        return result;
    }

    bool others_same(const LaunchPlan& plan, const Knob& knob) const {
        if (plan.entry_as_written != plan_.entry_as_written || plan.launcher != plan_.launcher ||
            plan.processes_per_node != plan_.processes_per_node || plan.nodes != plan_.nodes || plan.cwd != plan_.cwd) {
            return false;
        }
        const auto env_of = [&](const LaunchPlan& item) {
            std::map<std::string, std::string> env;
            for (const auto& [name, value] : item.env) {
                const bool own = knob.kind == KnobKind::env && name == knob.spelling;
                if (!own) env[name] = value.value.text();
            }
            return env;
        };
        if (env_of(plan) != env_of(plan_)) return false;
        // Both sides leave out the same knobs only when these hold on both; compare what is common.
        return same_but_wanted(plan, knob);
    }

    bool same_but_wanted(const LaunchPlan& plan, const Knob& knob) const {
        const auto before = others(plan_, knob), after = others(plan, knob);
        if (before == after) return true;
        // A knob that the edit moved to its wanted value is left out of `after` but not of `before`.
        std::vector<std::string> rest;
        LaunchPlan masked = plan_;
        for (const auto& [name, value] : wanted_) {
            const Knob& item = *contract_.knob(name);
            if (item.kind != KnobKind::flag || &item == &knob) continue;
            const auto now = spelled_value(plan, item), then = spelled_value(plan_, item);
            if (!now || !then || !same_setting(item, *now, value) || same_setting(item, *then, value)) continue;
            const auto use = find_flag(masked, item.spelling);
            if (!use || use->equals || !use->has_value) return false;
            masked.arguments.erase(masked.arguments.begin() + static_cast<std::ptrdiff_t>(use->word),
                                   masked.arguments.begin() + static_cast<std::ptrdiff_t>(use->word) + 2);
        }
        return others(masked, knob) == after;
    }

    static bool takes_word(const Knob& knob, const FlagUse& use) {
        return !use.equals && use.has_value && (knob.form == FlagForm::value || knob.form == FlagForm::equals);
    }

    // ── flags ──

    Expected<void> set_flag(const Knob& knob, const Value& value) {
        const auto use = find_flag(plan_, knob.spelling);
        const bool two_sided = knob.form == FlagForm::negatable;
        const auto no_use = two_sided ? find_flag(plan_, negated(knob.spelling)) : std::nullopt;
        if (is_off(knob, value)) return remove_flag(knob, value);
        if (two_sided && (use || no_use)) {
            const std::size_t word = std::max(use ? use->word : 0, no_use ? no_use->word : 0);
            if (const auto place = plan_.arguments[word].value.span();
                place && take({*place, spell_flag(knob, value)}, knob, value)) {
                return {};
            }
        } else if (use && knob.form != FlagForm::switch_ && replace_value(knob, value, *use)) {
            return {};
        }
        return append_flag(knob, value);
    }

    bool replace_value(const Knob& knob, const Value& value, const FlagUse& use) {
        const ShellWord& flag = plan_.arguments[use.word];
        if (!use.has_value) {  // a bare `--flag` that means true
            const auto place = flag.value.span();
            const std::string joint = knob.form == FlagForm::equals ? "=" : " ";
            return place && take({*place, flag.value.text() + joint + quote(flag_text(value))}, knob, value);
        }
        const ShellWord& word = plan_.arguments[use.word + (use.equals ? 0 : 1)];
        const std::string text = flag_text(value, use.value);
        const auto place = word.value.span(use.value_at, word.value.text().size());
        if (place && !needs_quotes(text) && take({*place, text}, knob, value)) return true;
        const std::string whole = (use.equals ? flag.value.text().substr(0, use.value_at) : "") + text;
        return word.node && take({*word.node, quote(whole)}, knob, value);
    }

    Expected<void> append_flag(const Knob& knob, const Value& value) {
        const InsertionPoint& point = plan_.new_flag;
        if (take({point.at, point.before + spell_flag(knob, value) + point.after}, knob, value)) return {};
        return cannot(knob, value);
    }

    Expected<void> remove_flag(const Knob& knob, const Value& value) {
        for (int rounds = 0; rounds < 8; ++rounds) {
            const auto use = find_flag(plan_, knob.spelling);
            if (!use) return {};
            const ShellWord& flag = plan_.arguments[use->word];
            auto place = flag.node ? flag.node : flag.value.span();
            if (!place) return cannot(knob, value);
            if (takes_word(knob, *use)) {
                const ShellWord& word = plan_.arguments[use->word + 1];
                const auto end = word.node ? word.node : word.value.span();
                if (!end || end->source != place->source || end->begin < place->end) return cannot(knob, value);
                place->end = end->end;
            }
            const std::string& text = plan_.sources[static_cast<std::size_t>(place->source)].text;
            TextSpan cut = *place;
            cut.begin = cut_begin(text, place->begin);
            if (cut.begin == place->begin) {  // the first of a list or of a quoted text: what follows moves up
                while (cut.end < text.size() && (text[cut.end] == ' ' || text[cut.end] == '\t')) ++cut.end;
            }
            LaunchRequest request = edited({cut, ""});
            auto plan = read_launch(request);
            if (!plan || !others_same(*plan, knob)) return cannot(knob, value);
            request_ = std::move(request);
            plan_ = std::move(*plan);
        }
        return cannot(knob, value);
    }

    // ── environment ──

    Expected<void> set_env(const Knob& knob, const Value& value) {
        const auto found = plan_.env.find(knob.spelling);
        const bool in_text = found != plan_.env.end() && found->second.assignment;
        if (found != plan_.env.end() && !in_text) return set_launch_env(knob, value);
        if (is_null(value)) return remove_env(knob, value, found->second);
        const std::string text = to_text(value);
        if (in_text) {
            const auto place = found->second.value.span();
            if (place && !needs_quotes(text) && take({*place, text}, knob, value)) return {};
            if (take({*found->second.assignment, knob.spelling + "=" + quote(text)}, knob, value)) return {};
        }
        const InsertionPoint& point = plan_.new_export;
        if (take({point.at, point.before + knob.spelling + "=" + quote(text) + point.after}, knob, value)) return {};
        return cannot(knob, value);
    }

    Expected<void> set_launch_env(const Knob& knob, const Value& value) {
        if (is_null(value)) {
            return fail(ErrorKind::invalid_input,
                        "{} is set by launch.env and cannot be unset by a knob; take it out of launch.env",
                        knob.spelling);
        }
        request_.env[knob.spelling] = to_text(value);
        env_[knob.spelling] = to_text(value);
        INFRARSI_ASSIGN(plan_, read_launch(request_));
        return {};
    }

    Expected<void> remove_env(const Knob& knob, const Value& value, const LaunchEnv& env) {
        TextSpan cut = *env.statement;
        const std::string& text = plan_.sources[static_cast<std::size_t>(cut.source)].text;
        const std::size_t newline = cut.begin == 0 ? std::string::npos : text.rfind('\n', cut.begin - 1);
        const std::size_t line = newline == std::string::npos ? 0 : newline + 1;
        const bool first = text.find_first_not_of(" \t", line) == cut.begin;
        if (first && cut.end < text.size() && text[cut.end] == '\n' && cut.source > 0) {
            cut = {cut.source, line, cut.end + 1};
        } else {
            if (cut.end < text.size() && text[cut.end] == ';') ++cut.end;
            if (cut.end < text.size() && text[cut.end] == ' ') ++cut.end;
        }
        return take({cut, ""}, knob, value) ? Expected<void>() : cannot(knob, value);
    }

    // ── config files ──

    Expected<void> set_config_knob(const Knob& knob, const Value& value) {
        const std::size_t hash = knob.spelling.find('#');
        const std::string path = knob.spelling.substr(0, hash);
        const std::string key = hash == std::string::npos ? "" : knob.spelling.substr(hash + 1);
        const auto format = config_format(path);
        if (key.empty() || !format) {
            return fail_at(ErrorKind::invalid_input, {contract_.file.string(), knob.line, 0},
                           "knob {}: a config knob is written path.yaml#key, with a YAML, JSON or TOML file",
                           knob.name);
        }
        INFRARSI_ASSIGN(const std::string text, text_of(path));
        const auto before = get_config(text, *format, key, path);
        if (!before && before.error().kind() != ErrorKind::not_found) return Unexpected(before.error());
        const Value now = before ? before->value : knob.reference;
        if (same_effect(now, value)) return {};
        INFRARSI_ASSIGN(std::string changed, set_config(text, *format, key, value, path));
        const auto after = get_config(changed, *format, key, path);
        if (!is_null(value) && (!after || !same_effect(after->value, value))) return cannot(knob, value);
        request_.overlay[path] = std::move(changed);
        changed_ = true;
        notes_.push_back(fmt::format("{}{} {} {} → {}", path, before ? ":" + std::to_string(before->line) : "", key,
                                     to_text(now), to_text(value)));
        return {};
    }

    Expected<std::string> text_of(const std::string& path) const {
        if (const auto over = request_.overlay.find(path); over != request_.overlay.end()) return over->second;
        return read_file(request_.root / path, kLargestFile);
    }

    // ── the outcome ──

    void record(const Knob& knob, const LaunchPlan& before, const Value& from, const Value& to) {
        std::string place;
        for (std::size_t i = 0; i < before.sources.size() && place.empty(); ++i) {
            for (const LaunchSource& now : plan_.sources) {
                if (now.path != before.sources[i].path || now.text == before.sources[i].text) continue;
                const auto [a, b] = std::mismatch(now.text.begin(), now.text.end(), before.sources[i].text.begin(),
                                                  before.sources[i].text.end());
                std::size_t at = static_cast<std::size_t>(a - now.text.begin());
                at = std::min(now.text.find_first_not_of(" \\\n", at), at + 200);
                place = now.path.empty() ? "launch.command" : fmt::format("{}:{}", now.path, line_at(now.text, at));
                break;
            }
        }
        if (place.empty()) place = "launch.env";
        notes_.push_back(fmt::format("{} {} {} → {}", place, knob.spelling, to_text(from), to_text(to)));
    }

    Unexpected cannot(const Knob& knob, const Value& value) const {
        return fail(ErrorKind::invalid_input,
                    "cannot set {} ({}) to {}: its place on the launch line could not be edited without changing "
                    "something else; write {} out on the launch line, or take the knob out of infrarsi.yaml",
                    knob.name, knob.spelling, to_text(value), knob.spelling);
    }

    Expected<LaunchEdit> finish() {
        LaunchEdit edit;
        for (auto& [path, text] : request_.overlay) {
            const auto on_disk = read_file(request_.root / path, kLargestFile);
            if (!on_disk || *on_disk != text) edit.files[path] = std::move(text);
        }
        edit.command = request_.command;
        edit.env = std::move(env_);
        edit.notes = std::move(notes_);
        return edit;
    }

    const Contract& contract_;
    const Settings& wanted_;
    LaunchRequest request_;
    LaunchPlan plan_, original_;
    std::map<std::string, std::string> env_;
    std::vector<std::string> notes_;
    bool changed_ = false;
};

}  // namespace

Expected<LaunchEdit> apply_settings(const Contract& contract, const std::filesystem::path& source_root,
                                    const Settings& settings, std::map<std::string, std::string> overlay) {
    return LaunchEditor(contract, source_root, settings, std::move(overlay)).run();
}

std::string spell_flag(const Knob& knob, const Value& value) {
    if (is_off(knob, value)) return "";
    switch (knob.form) {
        case FlagForm::switch_: return knob.spelling;
        case FlagForm::negatable: return same_effect(value, Value{false}) ? negated(knob.spelling) : knob.spelling;
        case FlagForm::equals: return quote(knob.spelling + "=" + flag_text(value));
        case FlagForm::value: return knob.spelling + " " + quote(flag_text(value));
    }
    return "";
}

std::optional<Value> spelled_value(const LaunchPlan& plan, const Knob& knob) {
    if (knob.kind == KnobKind::config) return std::nullopt;
    if (knob.kind == KnobKind::env) {
        const auto found = plan.env.find(knob.spelling);
        if (found == plan.env.end()) return std::nullopt;
        return value_from_text(found->second.value.text());
    }
    const auto use = find_flag(plan, knob.spelling);
    if (knob.form == FlagForm::negatable) {
        const auto no_use = find_flag(plan, negated(knob.spelling));
        if (!use && !no_use) return std::nullopt;
        return Value{use && (!no_use || use->word > no_use->word)};
    }
    if (!use) return std::nullopt;
    if (knob.form == FlagForm::switch_) return Value{true};
    return use->has_value ? value_from_text(use->value) : Value{true};
}

}  // namespace infrarsi
