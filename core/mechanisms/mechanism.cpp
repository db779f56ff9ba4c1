#include "core/mechanisms/mechanism.h"

#include <nlohmann/json.hpp>

namespace infrarsi {

std::string_view shipped_mechanisms_json();

namespace {

using nlohmann::json;

std::vector<std::string> texts(const json& object, const char* key) {
    std::vector<std::string> result;
    if (const auto found = object.find(key); found != object.end()) {
        for (const json& item : *found) result.push_back(item.get<std::string>());
    }
    return result;
}

Value scalar(const json& item) {
    auto value = value_from_json(item);
    return value ? *value : Value{item.dump()};
}

template <class Enum>
Enum named(std::string_view text, std::initializer_list<Enum> values) {
    for (const Enum value : values) {
        if (to_string(value) == text) return value;
    }
    throw std::runtime_error(fmt::format("unknown word {}", text));
}

std::vector<MechanismRelation> relations(const json& object, const char* key, const char* mechanism) {
    std::vector<MechanismRelation> result;
    if (const auto found = object.find(key); found != object.end()) {
        for (const json& item : *found) {
            std::string reason = item.value("reason", "");
            const std::string what = item.value("what", "");
            if (!what.empty() && !item.contains("mechanism")) reason = reason.empty() ? what : what + ": " + reason;
            result.push_back({item.value(mechanism, ""), reason, texts(item, "stacks")});
        }
    }
    return result;
}

Mechanism mechanism_of(const json& object) {
    Mechanism result;
    result.id = object.at("id").get<std::string>();
    result.aliases = texts(object, "aliases");
    result.title = object.value("title", "");
    result.note = object.value("note", "");
    result.kind = named(object.at("class").get<std::string>(), {MechanismClass::kernel, MechanismClass::balance});
    result.memory = named(object.at("memory").get<std::string>(),
                          {MemoryEffect::saver, MemoryEffect::spender, MemoryEffect::neutral, MemoryEffect::depends});
    result.risk = named(
        object.at("contract_risk").get<std::string>(),
        {ContractRisk::none, ContractRisk::precision, ContractRisk::batch, ContractRisk::schedule, ContractRisk::data});
    result.phases = texts(object, "phases");
    result.enters_global_batch = object.value("enters_global_batch", false);
    if (const auto domain = object.find("domain"); domain != object.end()) {
        result.domain_type = domain->value("type", "");
        if (const auto values = domain->find("values"); values != domain->end()) {
            for (const json& item : *values) result.domain.push_back(scalar(item));
        }
    }
    result.conflicts = relations(object, "conflicts", "with");
    result.requirements = relations(object, "requires", "mechanism");
    for (const auto& [stack, spellings] : object.at("stacks").items()) {
        for (const json& item : spellings) {
            result.spellings[stack].push_back({item.at("kind").get<std::string>(), item.at("name").get<std::string>(),
                                               item.value("syntax", ""),
                                               item.contains("default") ? scalar(item["default"]) : Value{}});
        }
    }
    return result;
}

}  // namespace

std::string_view to_string(MechanismClass value) {
    return value == MechanismClass::kernel ? "kernel" : "balance";
}

std::string_view to_string(MemoryEffect value) {
    switch (value) {
        case MemoryEffect::saver: return "saver";
        case MemoryEffect::spender: return "spender";
        case MemoryEffect::neutral: return "neutral";
        case MemoryEffect::depends: return "depends";
    }
    return "depends";
}

std::string_view to_string(ContractRisk value) {
    switch (value) {
        case ContractRisk::none: return "none";
        case ContractRisk::precision: return "precision";
        case ContractRisk::batch: return "batch";
        case ContractRisk::schedule: return "schedule";
        case ContractRisk::data: return "data";
    }
    return "none";
}

Expected<MechanismTable> MechanismTable::parse(std::string_view text) {
    try {
        MechanismTable table;
        const json document = json::parse(text);
        for (const json& object : document.at("mechanisms")) {
            table.mechanisms_.push_back(mechanism_of(object));
        }
        for (std::size_t i = 0; i < table.mechanisms_.size(); ++i) {
            const Mechanism& item = table.mechanisms_[i];
            table.by_name_[item.id] = i;
            for (const std::string& alias : item.aliases) table.by_name_.emplace(alias, i);
        }
        return table;
    } catch (const std::exception& error) {
        return fail(ErrorKind::invalid_input,
                    "the mechanism data cannot be read: {}; make it again with "
                    "seeds/mechanisms/compact.py",
                    error.what());
    }
}

const Mechanism* MechanismTable::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &mechanisms_[found->second];
}

std::vector<const Mechanism*> MechanismTable::spelled(std::string_view stack, std::string_view kind,
                                                      std::string_view name) const {
    std::vector<const Mechanism*> result;
    for (const Mechanism& item : mechanisms_) {
        const bool spells = std::any_of(item.spellings.begin(), item.spellings.end(), [&](const auto& entry) {
            if (!stack.empty() && entry.first != stack) return false;
            return std::any_of(entry.second.begin(), entry.second.end(), [&](const MechanismSpelling& spelling) {
                return (kind.empty() || spelling.kind == kind) && spelling.name == name;
            });
        });
        if (spells) result.push_back(&item);
    }
    return result;
}

std::optional<std::string> MechanismTable::conflict(std::string_view a, std::string_view b,
                                                    std::string_view stack) const {
    const Mechanism *first = find(a), *second = find(b);
    if (first == nullptr || second == nullptr) return std::nullopt;
    for (const auto& [from, to] : {std::pair(first, second), std::pair(second, first)}) {
        for (const MechanismRelation& relation : from->conflicts) {
            if (relation.mechanism != to->id) continue;
            const auto& stacks = relation.stacks;
            if (stacks.empty() || std::find(stacks.begin(), stacks.end(), stack) != stacks.end())
                return relation.reason;
        }
    }
    return std::nullopt;
}

MechanismTable shipped_mechanisms() {
    auto table = MechanismTable::parse(shipped_mechanisms_json());
    INFRARSI_CHECK(table.has_value(), "the mechanisms compiled into the program must parse");
    return std::move(*table);
}

}  // namespace infrarsi
