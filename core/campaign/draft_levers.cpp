#include "core/campaign/draft_levers.h"

#include "core/repo/config_file.h"
#include "core/repo/launch_edit.h"

namespace infrarsi {
namespace {

std::string snake(std::string_view text) {
    while (text.starts_with('-')) text.remove_prefix(1);
    const std::size_t dot = text.rfind('.');
    if (dot != std::string_view::npos) text.remove_prefix(dot + 1);
    std::string name;
    for (const char c : text) {
        name.push_back(std::isalnum(static_cast<unsigned char>(c)) != 0
                           ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                           : '_');
    }
    return name;
}

std::string_view stack_key(Stack stack) {
    return stack == Stack::auto_ ? "ddp" : to_string(stack);
}

// Options that transformers' TrainingArguments and Megatron's parser bring along; their sources lie outside the
// project.
struct Implied {
    Stack stack;
    const char* flag;
    FlagForm form;
    const char* mechanism;
    Value fallback;
};

const std::vector<Implied>& implied() {
    static const std::vector<Implied> kImplied = {
        {Stack::hf, "--per_device_train_batch_size", FlagForm::value, "batch.micro_batch", Value{std::int64_t{8}}},
        {Stack::hf, "--gradient_accumulation_steps", FlagForm::value, "batch.grad_accum", Value{std::int64_t{1}}},
        {Stack::hf, "--gradient_checkpointing", FlagForm::value, "recompute.mode", Value{false}},
        {Stack::hf, "--torch_compile", FlagForm::value, "compile.enable", Value{false}},
        {Stack::hf, "--dataloader_num_workers", FlagForm::value, "dataloader.workers", Value{std::int64_t{0}}},
        {Stack::megatron, "--overlap-grad-reduce", FlagForm::switch_, "comm.overlap_grad_reduce", Value{false}},
        {Stack::megatron, "--recompute-activations", FlagForm::switch_, "recompute.mode", Value{false}},
    };
    return kImplied;
}

class Finder {
public:
    Finder(const KnobSources& sources, Stack stack) : sources_(sources), stack_(stack) {}

    std::vector<Lever> run() {
        for (const PythonOption& option : sources_.options) declared(option);
        for (std::size_t i = 0; i < sources_.plan.arguments.size(); ++i) undeclared(i);
        for (const Implied& item : implied()) {
            if (item.stack == stack_ && !knows(item.flag)) {
                add_flag(item.flag, item.form, item.mechanism, item.fallback, "the default");
            }
        }
        for (const auto& [path, text] : sources_.configs) config(path, text);
        return std::move(levers_);
    }

private:
    bool knows(const std::string& flag) const {
        return std::any_of(levers_.begin(), levers_.end(), [&](const Lever& lever) { return lever.spelling == flag; });
    }

    std::string mechanism_of(const std::string& name, std::string_view kind) const {
        const auto spelled = sources_.mechanisms.spelled(stack_key(stack_), kind, name);
        const auto guess = guess_mechanism(name);
        if (spelled.size() == 1) return spelled.front()->id;
        if (guess) return *guess;
        return spelled.empty() ? "" : spelled.front()->id;
    }

    void declared(const PythonOption& option) {
        if (option.stores_false || !option.flags.front().starts_with("--")) return;
        std::string flag = option.flags.front();
        for (const std::string& other : option.flags) {  // the spelling that the job uses
            if (find_flag(sources_.plan, other)) flag = other;
        }
        std::string mechanism = mechanism_of(flag, "cli_flag");
        if (mechanism.empty()) mechanism = mechanism_of("--" + option.dest, "cli_flag");
        if (mechanism.empty()) return;
        std::optional<Value> fallback = option.fallback;
        std::string place = fmt::format("the default in {}:{}", option.path, option.line);
        if (option.source == OptionSource::global) {
            if (const auto over = sources_.overrides.find(option.dest); over != sources_.overrides.end()) {
                fallback = over->second;
                place = "the config file";
            }
        }
        add_flag(flag, option.form, mechanism, fallback, place);
        if (!knows(flag)) return;
        Lever& lever = levers_.back();
        lever.choices = option.choices;
        lever.is_bool = lever.is_bool || option.type == "bool" || option.form == FlagForm::negatable;
    }

    // A flag that no source declares: the parser lies outside the project.
    void undeclared(std::size_t index) {
        const std::string& word = sources_.plan.arguments[index].value.text();
        if (!word.starts_with("--") || word.size() < 3) return;
        const std::string flag = word.substr(0, word.find('='));
        if (knows(flag)) return;
        for (const PythonOption& option : sources_.options) {
            if (std::find(option.flags.begin(), option.flags.end(), flag) != option.flags.end()) return;
        }
        const std::string mechanism = mechanism_of(flag, "cli_flag");
        if (mechanism.empty()) return;
        const auto use = find_flag(sources_.plan, flag);
        FlagForm form = FlagForm::value;
        if (use->equals) form = FlagForm::equals;
        if (!use->has_value) {
            const bool takes_bool = stack_ == Stack::hf;  // HfArgumentParser takes `--flag False` too
            form = takes_bool ? FlagForm::value : FlagForm::switch_;
        }
        add_flag(flag, form, mechanism, std::nullopt, "");
    }

    void add_flag(const std::string& flag, FlagForm form, const std::string& mechanism, std::optional<Value> fallback,
                  const std::string& default_place) {
        Lever lever;
        lever.spelling = flag;
        lever.form = form;
        lever.label = snake(flag);
        lever.mechanism = mechanism;
        Knob knob;
        knob.spelling = flag;
        knob.form = form;
        const auto use = find_flag(sources_.plan, flag);
        if (const auto spelled = spelled_value(sources_.plan, knob)) {
            const bool known =
                !use || !use->has_value || sources_.plan.arguments[use->word + (use->equals ? 0 : 1)].value.known();
            if (known) lever.now = *spelled;
            lever.place = fmt::format("{} passes {}", place_of(use, flag), to_text(*spelled));
        } else {
            lever.now = fallback;
            if (fallback) lever.place = fmt::format("{} is {}", default_place, to_text(*fallback));
        }
        lever.is_bool = form == FlagForm::switch_ || form == FlagForm::negatable ||
                        (lever.now && std::holds_alternative<bool>(*lever.now));
        levers_.push_back(std::move(lever));
    }

    std::string place_of(const std::optional<FlagUse>& use, const std::string& flag) const {
        const LaunchPlan& plan = sources_.plan;
        const auto any = use ? use : find_flag(plan, "--no-" + flag.substr(2));
        const ShellWord* word = any ? &plan.arguments[any->word + (any->has_value && !any->equals ? 1 : 0)] : nullptr;
        const auto span = word ? word->value.outer_span(0, word->value.text().size()) : std::nullopt;
        if (!span) return "the launch line";
        const LaunchSource& source = plan.sources[static_cast<std::size_t>(span->source)];
        if (source.path.empty()) return "the launch command";
        return fmt::format("{}:{}", source.path, line_at(source.text, span->begin));
    }

    void config(const std::string& path, const std::string& text) {
        const auto format = config_format(path);
        if (!format) return;
        const auto scalars = config_scalars(text, *format, path);
        if (!scalars) return;
        for (const ConfigScalar& scalar : *scalars) {
            std::string mechanism = mechanism_of(scalar.key, "config_key");
            if (mechanism.empty() && path.ends_with(".json")) {  // DeepSpeed's config also stands beside other stacks
                const auto spelled = sources_.mechanisms.spelled("deepspeed", "config_key", scalar.key);
                if (!spelled.empty()) mechanism = spelled.front()->id;
            }
            if (mechanism.empty()) continue;
            Lever lever;
            lever.kind = KnobKind::config;
            lever.spelling = path + "#" + scalar.key;
            lever.label = snake(scalar.key);
            lever.mechanism = mechanism;
            lever.now = scalar.value;
            lever.is_bool = std::holds_alternative<bool>(scalar.value);
            lever.place = fmt::format("{}:{} says {}", path, scalar.line, to_text(scalar.value));
            levers_.push_back(std::move(lever));
        }
    }

    const KnobSources& sources_;
    Stack stack_;
    std::vector<Lever> levers_;
};

bool counts_updates(std::string_view name) {
    static const std::vector<std::string> kNames = {"updates",     "max_updates", "num_updates",    "max_steps",
                                                    "max_iters",   "train_iters", "steps",          "num_steps",
                                                    "train_steps", "total_steps", "iterations",     "num_iterations",
                                                    "iters",       "n_steps",     "max_train_steps"};
    return std::find(kNames.begin(), kNames.end(), snake(name)) != kNames.end();
}

}  // namespace

std::vector<Lever> find_levers(const KnobSources& sources, Stack stack) {
    return Finder(sources, stack).run();
}

std::optional<UpdateCount> find_update_count(const KnobSources& sources) {
    const auto count_of = [](const Value& value) -> std::int64_t {
        const auto number = to_number(value);
        return number && *number >= 1 && *number < 1e12 ? static_cast<std::int64_t>(*number) : 0;
    };
    for (const ShellWord& word : sources.plan.arguments) {
        const std::string& text = word.value.text();
        if (!text.starts_with("--") || !counts_updates(text.substr(0, text.find('=')))) continue;
        const std::string flag = text.substr(0, text.find('='));
        const auto use = find_flag(sources.plan, flag);
        if (use && use->has_value) {
            if (const auto count = count_of(value_from_text(use->value)); count > 0) return UpdateCount{count, flag};
        }
    }
    for (const PythonOption& option : sources.options) {
        if (!counts_updates(option.dest) || !option.fallback) continue;
        const auto over = sources.overrides.find(option.dest);
        const Value value = over != sources.overrides.end() ? over->second : *option.fallback;
        if (const auto count = count_of(value); count > 0) return UpdateCount{count, option.flags.front()};
    }
    for (const auto& [path, text] : sources.configs) {
        const auto format = config_format(path);
        const auto scalars = format ? config_scalars(text, *format, path) : Expected<std::vector<ConfigScalar>>();
        if (!scalars) continue;
        for (const ConfigScalar& scalar : *scalars) {
            if (!counts_updates(scalar.key)) continue;
            if (const auto count = count_of(scalar.value); count > 0)
                return UpdateCount{count, path + "#" + scalar.key};
        }
    }
    return std::nullopt;
}

}  // namespace infrarsi
