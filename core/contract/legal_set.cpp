#include "core/contract/constraint.h"

namespace infrarsi {

namespace {

// Canonical ids of data/mechanisms.yaml, and the short forms that people write.
bool is_any(const std::string& mechanism, std::initializer_list<std::string_view> ids) {
    return std::find(ids.begin(), ids.end(), mechanism) != ids.end();
}
bool is_micro_batch(const Knob& knob) {
    return is_any(knob.mechanism, {"batch.micro_batch", "micro_batch"});
}
bool is_grad_accum(const Knob& knob) {
    return is_any(knob.mechanism, {"batch.grad_accum", "grad_accum"});
}
bool is_global_batch(const Knob& knob) {
    return is_any(knob.mechanism, {"batch.global_batch", "global_batch"});
}
bool is_sequence_length(const Knob& knob) {
    return is_any(knob.mechanism, {"batch.seq_len", "seq_len"});
}
// Degrees that take ranks away from data parallelism.
bool is_layout(const Knob& knob) {
    return is_any(knob.mechanism, {"parallel.tp", "parallel.pp", "parallel.cp", "parallel.ulysses"});
}

std::optional<double> number_at(const Settings& settings, const std::string& name) {
    const auto found = settings.find(name);
    if (found == settings.end()) return std::nullopt;
    const auto number = to_number(found->second);
    return number && *number > 0 ? number : std::nullopt;
}

// The product of the knobs' numbers; nothing when one of them is unset or no number.
std::optional<double> product(const std::vector<std::string>& names, const Settings& settings) {
    double result = 1;
    for (const auto& name : names) {
        const auto number = number_at(settings, name);
        if (!number) return std::nullopt;
        result *= *number;
    }
    return result;
}

std::string listed(const std::vector<Value>& values) {
    std::string text;
    for (const Value& value : values) text += (text.empty() ? "" : ", ") + to_text(value);
    return text;
}

std::string at_values(const Constraint& constraint, const Settings& settings) {
    Settings used;
    for (const auto& name : constraint.names()) {
        if (const auto found = settings.find(name); found != settings.end()) used.insert(*found);
    }
    for (const auto& word : constraint.words()) {
        if (const auto found = settings.find(word.word); found != settings.end()) used.insert(*found);
    }
    return describe(used);
}

}  // namespace

bool accumulation_follows(Stack stack) {
    return stack == Stack::megatron;
}

Expected<LegalSet> LegalSet::of(const Contract& contract) {
    LegalSet set;
    set.knobs_ = contract.knobs;
    for (const auto& text : contract.constraints) {
        INFRARSI_ASSIGN(Constraint constraint, Constraint::parse(text));
        set.constraints_.push_back(std::move(constraint));
    }
    bool has_micro = false, has_accum = false, follows = accumulation_follows(contract.launch.stack);
    std::vector<std::string> batch;
    for (const Knob& knob : contract.knobs) {
        has_micro |= is_micro_batch(knob);
        has_accum |= is_grad_accum(knob);
        if (is_micro_batch(knob)) batch.insert(batch.begin(), knob.name);
        if (is_grad_accum(knob)) batch.push_back(knob.name);
        if (is_global_batch(knob) || is_sequence_length(knob)) set.immovable_knobs_.push_back(knob.name);
        const auto pinned = to_number(knob.reference);
        follows |= is_global_batch(knob) && pinned && *pinned > 0;
    }
    if (has_micro && has_accum) {
        set.batch_knobs_ = batch;
        set.batch_product_ = product(batch, contract.reference_settings()).value_or(0);
    } else if (!follows) {
        set.immovable_knobs_.insert(set.immovable_knobs_.end(), batch.begin(), batch.end());
    }
    for (const Knob& knob : contract.knobs) {
        if (!is_layout(knob) || follows) continue;
        (set.batch_knobs_.empty() ? set.immovable_knobs_ : set.divisor_knobs_).push_back(knob.name);
    }
    return set;
}

std::optional<std::string> LegalSet::why_illegal(const Settings& complete) const {
    for (const auto& [name, value] : complete) {
        const bool known =
            std::any_of(knobs_.begin(), knobs_.end(), [&](const Knob& knob) { return knob.name == name; });
        if (!known) return fmt::format("there is no knob {}", name);
    }
    for (const Knob& knob : knobs_) {
        const auto found = complete.find(knob.name);
        if (found == complete.end()) return fmt::format("the knob {} has no value", knob.name);
        const bool legal = std::any_of(knob.values.begin(), knob.values.end(),
                                       [&](const Value& value) { return same_effect(value, found->second); });
        if (!legal) {
            return fmt::format("{}={} is not among its values ({})", knob.name, to_text(found->second),
                               listed(knob.values));
        }
    }
    if (auto reason = why_not_conserved(complete)) return reason;
    for (const Constraint& constraint : constraints_) {
        const auto holds = constraint.holds(complete);
        if (!holds) return fmt::format("\"{}\" cannot be judged: {}", constraint.text(), holds.error().message());
        if (!*holds)
            return fmt::format("\"{}\" does not hold at {}", constraint.text(), at_values(constraint, complete));
    }
    return std::nullopt;
}

std::optional<std::string> LegalSet::why_not_conserved(const Settings& complete) const {
    const auto reference_of = [&](const std::string& name) {
        const auto knob = std::find_if(knobs_.begin(), knobs_.end(), [&](const Knob& k) { return k.name == name; });
        return knob->reference;
    };
    const auto changed = [&](const std::string& name) { return !same_effect(reference_of(name), complete.at(name)); };
    for (const auto& name : immovable_knobs_) {
        if (!changed(name)) continue;
        return fmt::format(
            "{}={} changes the tokens per update (the reference is {}), and no other knob makes up for it", name,
            to_text(complete.at(name)), to_text(reference_of(name)));
    }
    std::vector<std::string> all = batch_knobs_;
    all.insert(all.end(), divisor_knobs_.begin(), divisor_knobs_.end());
    if (std::none_of(all.begin(), all.end(), changed)) return std::nullopt;
    Settings reference, used;
    for (const auto& name : all) {
        reference[name] = reference_of(name);
        used[name] = complete.at(name);
    }
    const auto now = product(batch_knobs_, used), divided_now = product(divisor_knobs_, used);
    const auto before = product(batch_knobs_, reference), divided_before = product(divisor_knobs_, reference);
    if (!now || !before || !divided_now || !divided_before) {
        return fmt::format(
            "sequences per update cannot be compared, because a batch knob is not set to a number: {} against {}",
            describe(used), describe(reference));
    }
    if (same_effect(Value{*now * *divided_before}, Value{*before * *divided_now})) return std::nullopt;
    return fmt::format("sequences per update must stay as they are: {} makes {:g}, the reference {} makes {:g}",
                       describe(used), *now / *divided_now, describe(reference), *before / *divided_before);
}

std::optional<Settings> LegalSet::conserve_batch(const Contract& contract, const Settings& changes,
                                                 const std::string& held_knob) const {
    Settings complete = contract.complete(changes);
    if (!why_not_conserved(complete)) return contract.differences(changes);
    // Accumulation stands last and is asked first: it costs no memory.
    for (auto at = batch_knobs_.rbegin(); at != batch_knobs_.rend(); ++at) {
        const std::string& name = *at;
        if (name == held_knob) continue;
        const Knob* knob = contract.knob(name);
        for (const Value& value : knob->values) {
            Settings repaired = complete;
            repaired[name] = value;
            if (why_not_conserved(repaired)) continue;
            Settings result = changes;
            result[name] = value;
            return contract.differences(result);
        }
    }
    return std::nullopt;
}

}  // namespace infrarsi
