#include "core/measure/knob_effect.h"

#include <fmt/format.h>

#include <algorithm>

namespace infrarsi {
namespace {

// "--micro-batch-size" and "configs/a.yaml#model.recompute" as argparse and config objects name them.
std::string held_name(const Knob& knob) {
    std::string name = knob.spelling;
    if (const auto hash = name.find('#'); knob.kind == KnobKind::config && hash != std::string::npos) {
        name.erase(0, hash + 1);
        if (const auto dot = name.rfind('.'); dot != std::string::npos) {
            name.erase(0, dot + 1);
        }
    }
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

const Value* find(const std::map<std::string, Value>& values, const std::string& name) {
    const auto it = values.find(name);
    return it == values.end() ? nullptr : &it->second;
}

std::optional<Value> seen_value(const Knob& knob, const KnobMessage& message) {
    const Value* value = nullptr;
    if (knob.kind == KnobKind::env) {
        value = find(message.env, knob.spelling);
    } else {
        const auto name = held_name(knob);
        value = find(message.args, name);
        if (value == nullptr) {
            value = find(message.globals, name);
        }
    }
    return value != nullptr ? std::optional(*value) : std::nullopt;
}

// The same to the job: numbers and booleans by effect, an unset environment variable by absence, a switch that is off
// whether it is written false or left out.
bool took_effect(const Knob& knob, const Value& requested, const Value& held) {
    if (same_effect(requested, held)) {
        return true;
    }
    if (knob.kind == KnobKind::env) {
        return !is_null(requested) && to_text(requested) == to_text(held);
    }
    const auto is_off = [](const Value& value) { return is_null(value) || same_effect(value, Value{false}); };
    if (is_off(requested) && is_off(held)) {
        return true;
    }
    return to_text(requested) == to_text(held);
}

}  // namespace

KnobEffect knob_effect(const Contract& contract, const Settings& requested, const std::optional<KnobMessage>& message) {
    KnobEffect effect;
    if (!message) {
        return effect;
    }
    for (const auto& knob : contract.knobs) {
        const auto wanted = requested.find(knob.name);
        if (wanted == requested.end()) {
            continue;
        }
        const auto held = seen_value(knob, *message);
        if (held) {
            effect.effective[knob.name] = *held;
        }
        // A knob that is not set leaves the job's own default, whatever that is.
        const bool is_unset = is_null(wanted->second) && knob.kind != KnobKind::env;
        if (held && !is_unset && !took_effect(knob, wanted->second, *held)) {
            effect.ineffective.push_back(
                fmt::format("{}: requested {}, effective {}", knob.name, to_text(wanted->second), to_text(*held)));
            continue;
        }
        const auto number = to_number(wanted->second);
        if ((knob.mechanism == "compile" || knob.mechanism == "compile.enable") &&
            same_effect(wanted->second, Value{true}) && message->compiled_frames.value_or(-1) == 0) {
            effect.ineffective.push_back(
                fmt::format("{}: requested true, but no frame of the job was compiled", knob.name));
        }
        if (knob.mechanism == "dataloader.workers" && number && message->workers &&
            static_cast<double>(*message->workers) != *number) {
            effect.ineffective.push_back(fmt::format("{}: requested {}, effective {} loader processes", knob.name,
                                                     to_text(wanted->second), *message->workers));
        }
    }
    return effect;
}

}  // namespace infrarsi
