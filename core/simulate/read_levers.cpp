// The levers of a workload file: knobs, patches, what they do together and what they breach.

#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/simulate/workload_block.h"

namespace infrarsi::sim {

namespace {

const std::vector<std::string> kFields = {"loss",        "grad_norm",       "reported_step_times_s",
                                          "tokens",      "sequence_length", "optimizer_steps",
                                          "data_digest", "model_digest",    "frozen",
                                          "parameters",  "dtypes"};

// The one key that says how a field changes.
std::string_view operation(EvidenceField field) {
    switch (field) {
        case EvidenceField::optimizer_steps: return "add";
        case EvidenceField::data_digest:
        case EvidenceField::model_digest:
        case EvidenceField::frozen: return "salt";
        case EvidenceField::dtypes: return "set";
        default: return "multiply";
    }
}

EvidenceChange read_change(Problems& problems, const Field& item, const Job& job) {
    EvidenceChange change;
    const Block block(problems, item, {"field", "from_update", "multiply", "add", "salt", "set", "path"});
    if (!block) return change;
    const auto name = read_choice(problems, block.required("field"), kFields);
    if (!name) return change;
    change.field = static_cast<EvidenceField>(std::find(kFields.begin(), kFields.end(), *name) - kFields.begin());
    const std::string wanted(operation(change.field));
    for (const std::string key : {"multiply", "add", "salt", "set"}) {
        if (key == wanted || !block.optional(key)) continue;
        problems.add(block.place(), "{} changes {} with `{}`, which takes `{}`", item.path, *name, key, wanted);
    }
    const Field operand = block.required(wanted);
    change.from_update = static_cast<int>(block.whole_or("from_update", 1, job.updates, 1));
    if (wanted == "multiply") change.multiply = block.number_or(wanted, kNotNegative, 1);
    if (wanted == "add") change.add = block.whole_or(wanted, -job.updates, job.updates, 0);
    if (wanted == "set") change.set = block.numbers(operand, kZeroToOne);
    if (wanted == "salt" && !block.flag_or(wanted, true)) {
        problems.add(*operand.node, "{} must be true; leave the change out if nothing changes", operand.path);
    }
    if (change.field == EvidenceField::frozen) {
        const Field path = block.required("path");
        change.path = read_text(problems, path).value_or("");
        if (path && std::find(job.frozen.begin(), job.frozen.end(), change.path) == job.frozen.end()) {
            problems.add(*path.node, "{} must be one of job.frozen, found \"{}\"", path.path, change.path);
        }
    } else if (block.optional("path")) {
        problems.add(block.place(), "{} has a path, which is for frozen files", item.path);
    }
    return change;
}

enum class Breaching { must, must_not };

// `breach`, which an owner that breaches must have and no other may.
std::optional<Breach> read_breach(const Block& owner, Breaching breaching, std::string_view why, const Job& job) {
    const Field field = owner.optional("breach");
    if (!owner) return std::nullopt;
    if (breaching == Breaching::must_not) {
        if (field) owner.problems().add(*field.node, "{} has a breach but is not {}", owner.path(), why);
        return std::nullopt;
    }
    if (!field) {
        owner.problems().add(owner.place(),
                             "{} is {} and needs a breach: which invariant must catch it, and how it shows",
                             owner.path(), why);
        return std::nullopt;
    }
    Breach breach;
    const Block block(owner.problems(), field, {"invariant", "show"});
    breach.invariant = block.name("invariant");
    for (const Field& item : read_list(owner.problems(), block.required("show"))) {
        breach.changes.push_back(read_change(owner.problems(), item, job));
    }
    return breach;
}

std::optional<Value> read_setting_value(Problems& problems, const Field& field) {
    if (!field) return std::nullopt;
    const Value value = field.node->value();
    const bool is_setting =
        field.node->kind == YamlNode::Kind::scalar && !is_null(value) && !std::holds_alternative<double>(value);
    if (is_setting) return value;
    problems.add(*field.node, "{} must be true, false, a whole number or text, found {}", field.path,
                 describe(*field.node));
    return std::nullopt;
}

KnobValue read_value(Problems& problems, const Field& item, const std::string& knob, const Job& job) {
    KnobValue result;
    const Block block(problems, item,
                      {"value", "phases", "memory_gib", "activation_factor", "first_update_s", "legal", "breach"});
    result.value = read_setting_value(problems, block.required("value")).value_or(Value{});
    result.text = knob + "=" + canonical_json(to_json(result.value));
    result.phases = block.factors("phases");
    result.memory_gib = block.number_or("memory_gib", kAnyNumber, 0);
    result.activation_factor = block.number_or("activation_factor", kNotNegative, 1);
    result.first_update_s = block.number_or("first_update_s", kNotNegative, 0);
    result.is_legal = block.flag_or("legal", true);
    result.breach = read_breach(block, result.is_legal ? Breaching::must_not : Breaching::must, "illegal", job);
    return result;
}

void check_reference(const Knob& knob, const Field& place, Problems& problems) {
    const KnobValue& value = knob.values[static_cast<std::size_t>(knob.reference)];
    if (value.phases != kNoEffect || value.memory_gib != 0 || value.first_update_s != 0 || !value.is_legal) {
        problems.add(*place.node,
                     "{} is the reference value of {}: it must be legal, change no phase, add no memory and no first "
                     "update",
                     place.path, knob.name);
    }
}

Knob read_knob(Problems& problems, const Field& item, const Job& job) {
    Knob knob;
    const Block block(problems, item, {"name", "mechanism", "ordered", "reference", "values"});
    if (!block) return knob;
    knob.name = block.name("name");
    knob.mechanism = block.mechanism();
    knob.is_ordered = block.flag_or("ordered", false);
    const std::vector<Field> items = read_list(problems, block.required("values"));
    for (const Field& value : items) {
        KnobValue read = read_value(problems, value, knob.name, job);
        if (!is_null(read.value) && find_value(knob, read.value)) {
            problems.add(*value.node, "{} is there twice: {}", value.path, read.text);
        }
        knob.values.push_back(std::move(read));
    }
    const Field reference = block.required("reference");
    const auto value = read_setting_value(problems, reference);
    if (!value) return knob;
    if (const auto index = find_value(knob, *value)) {
        knob.reference = *index;
        check_reference(knob, items[static_cast<std::size_t>(*index)], problems);
    } else {
        problems.add(*reference.node, "{} is {}, which is none of the values of {}", reference.path,
                     describe(*reference.node), knob.name);
    }
    return knob;
}

Patch read_patch(Problems& problems, const Field& item, const Workload& workload) {
    Patch patch;
    const Block block(problems, item,
                      {"id", "title", "mechanism", "phases", "memory_gib", "first_update_s", "success", "requires",
                       "attenuations", "hack", "breach"});
    if (!block) return patch;
    patch.id = block.name("id");
    patch.title = block.text("title");
    patch.mechanism = block.mechanism();
    if (!block.required("phases")) return patch;
    patch.phases = block.factors("phases");
    patch.memory_gib = block.number_or("memory_gib", kAnyNumber, 0);
    patch.first_update_s = block.number_or("first_update_s", kNotNegative, 0);
    patch.success = block.number("success", kZeroToOne);
    patch.requirements = read_condition(problems, block.optional("requires"), workload);
    for (const Field& each : read_list(problems, block.optional("attenuations"))) {
        const Block attenuation(problems, each, {"when", "exponent"});
        patch.attenuations.push_back({read_condition(problems, attenuation.required("when"), workload),
                                      attenuation.number("exponent", kNotNegative)});
    }
    patch.is_hack = block.flag_or("hack", false);
    patch.breach = read_breach(block, patch.is_hack ? Breaching::must : Breaching::must_not, "a hack", workload.job);
    return patch;
}

// A `when` that names fewer settings than it must is no condition.
Condition read_when(const Block& block, std::size_t fewest, const Workload& workload) {
    const Field field = block.required("when");
    Condition when = read_condition(block.problems(), field, workload);
    if (field && field.node->kind == YamlNode::Kind::map && field.node->entries.size() < fewest) {
        block.problems().add(*field.node, "{} must name {} or more settings", field.path, fewest);
    }
    return when;
}

template <class Items>
std::vector<int> sorted_by_name(const Items& items, std::string Items::value_type::* name) {
    std::vector<int> order;
    for (std::size_t i = 0; i < items.size(); ++i) order.push_back(static_cast<int>(i));
    std::sort(order.begin(), order.end(), [&](int a, int b) {
        return items[static_cast<std::size_t>(a)].*name < items[static_cast<std::size_t>(b)].*name;
    });
    return order;
}

}  // namespace

Condition read_condition(Problems& problems, const Field& field, const Workload& workload) {
    Condition condition;
    for (const YamlEntry* entry : read_entries(problems, field)) {
        const auto knob = workload.find_knob(entry->key.text);
        if (!knob) {
            problems.add(entry->key, "{} names {}, which is no knob of this workload", field.path, entry->key.text);
            continue;
        }
        const Field item{&entry->value, field.path + "." + entry->key.text};
        const auto value = read_setting_value(problems, item);
        if (!value) continue;
        if (const auto index = find_value(workload.knobs[static_cast<std::size_t>(*knob)], *value)) {
            condition.push_back({*knob, *index});
        } else {
            problems.add(entry->value, "{} is {}, which is none of the values of {}", item.path, describe(entry->value),
                         entry->key.text);
        }
    }
    return condition;
}

void read_knobs(const Block& file, Workload& workload) {
    for (const Field& item : read_list(file.problems(), file.required("knobs"))) {
        Knob knob = read_knob(file.problems(), item, workload.job);
        if (workload.find_knob(knob.name)) file.problems().add(*item.node, "the knob {} is there twice", knob.name);
        workload.knobs.push_back(std::move(knob));
    }
    workload.knobs_by_name = sorted_by_name(workload.knobs, &Knob::name);
}

void read_patches(const Block& file, Workload& workload) {
    const Field field = file.required("patches");
    for (const Field& item : read_list(file.problems(), field)) {
        Patch patch = read_patch(file.problems(), item, workload);
        if (workload.find_patch(patch.id)) file.problems().add(*item.node, "the patch {} is there twice", patch.id);
        workload.patches.push_back(std::move(patch));
    }
    if (workload.patches.size() > kMostPatches) {
        file.problems().add(*field.node, "{} patches are more than the {} that a workload may have",
                            workload.patches.size(), kMostPatches);
    }
    workload.patches_by_id = sorted_by_name(workload.patches, &Patch::id);
}

void read_interactions(const Block& file, Workload& workload) {
    for (const Field& item : read_list(file.problems(), file.required("interactions"))) {
        const Block block(file.problems(), item, {"when", "phases", "memory_gib"});
        workload.interactions.push_back({.when = read_when(block, 2, workload),
                                         .phases = block.factors("phases"),
                                         .memory_gib = block.number_or("memory_gib", kAnyNumber, 0)});
    }
}

void read_conflicts(const Block& file, Workload& workload) {
    static const std::vector<std::string> kKinds = {"crash", "hang", "numeric", "contract"};
    for (const Field& item : read_list(file.problems(), file.required("conflicts"))) {
        const Block block(file.problems(), item, {"when", "kind", "text", "breach"});
        Conflict conflict;
        conflict.when = read_when(block, 1, workload);
        const auto kind = read_choice(file.problems(), block.required("kind"), kKinds);
        const auto index = std::find(kKinds.begin(), kKinds.end(), kind.value_or("crash")) - kKinds.begin();
        conflict.kind = static_cast<Conflict::Kind>(index);
        conflict.text = block.text_or("text", "");
        conflict.breach =
            read_breach(block, conflict.kind == Conflict::Kind::contract ? Breaching::must : Breaching::must_not,
                        "of kind contract", workload.job);
        workload.conflicts.push_back(std::move(conflict));
    }
}

}  // namespace infrarsi::sim
