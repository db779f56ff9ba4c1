#pragma once
// Canonical training mechanisms: what a knob does, the same on every stack, with its class, memory effect, the phases
// it touches, its risk for the contract, and how each stack spells it. Facts from seeds/mechanisms (DESIGN §2, §9).

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/value.h"

namespace infrarsi {

enum class MechanismClass { kernel, balance };                 // one device decides, or layout and interconnect
enum class MemoryEffect { saver, spender, neutral, depends };  // of turning it on or raising it
enum class ContractRisk { none, precision, batch, schedule, data };

struct MechanismRelation {
    std::string mechanism;  // empty for a requirement on hardware or software
    std::string reason;
    std::vector<std::string> stacks;  // empty: all
};

struct MechanismSpelling {
    std::string kind;  // cli_flag, config_key, env_var, code, launcher
    std::string name;  // "--micro-batch-size", "training.local_batch_size", "NCCL_ALGO"
    std::string syntax;
    Value fallback;
};

struct Mechanism {
    std::string id;                    // "batch.micro_batch"
    std::vector<std::string> aliases;  // "micro_batch"
    std::string title, note;
    MechanismClass kind = MechanismClass::kernel;
    MemoryEffect memory = MemoryEffect::neutral;
    ContractRisk risk = ContractRisk::none;
    std::vector<std::string> phases;  // forward, backward, optimizer, data, collectives, memory
    bool enters_global_batch = false;
    std::string domain_type;    // bool, int, float, enum, ordered, list, string
    std::vector<Value> domain;  // typical or legal values; empty when open
    std::vector<MechanismRelation> conflicts, requirements;
    std::map<std::string, std::vector<MechanismSpelling>> spellings;  // by stack

    // The name that contracts use: the first alias, else the id.
    [[nodiscard]] const std::string& short_name() const { return aliases.empty() ? id : aliases.front(); }
};

class MechanismTable {
public:
    // invalid_input when the JSON is not what compact.py writes.
    [[nodiscard]] static Expected<MechanismTable> parse(std::string_view json);

    [[nodiscard]] const std::vector<Mechanism>& all() const { return mechanisms_; }
    // By id or alias; nullptr when unknown. The pointer lives as long as the table.
    [[nodiscard]] const Mechanism* find(std::string_view name) const;
    // By a stack's own spelling ("megatron", "cli_flag", "--micro-batch-size"); an empty stack or kind means any.
    // Several mechanisms can share a flag (--dtype); the file's order is kept.
    [[nodiscard]] std::vector<const Mechanism*> spelled(std::string_view stack, std::string_view kind,
                                                        std::string_view name) const;
    // Whether `a` and `b` are known not to go together on `stack`, with the reason.
    [[nodiscard]] std::optional<std::string> conflict(std::string_view a, std::string_view b,
                                                      std::string_view stack) const;

private:
    std::vector<Mechanism> mechanisms_;
    std::map<std::string, std::size_t, std::less<>> by_name_;
};

// The table that ships with the program; about 3 ms to parse, so keep it.
[[nodiscard]] MechanismTable shipped_mechanisms();

// What an ordinary script's flag, config key or variable most likely does, from its name alone: "--batch_size",
// "per_device_train_batch_size", "OMP_NUM_THREADS". A canonical id; nothing when the name says nothing.
[[nodiscard]] std::optional<std::string> guess_mechanism(std::string_view name);

[[nodiscard]] std::string_view to_string(MechanismClass value);
[[nodiscard]] std::string_view to_string(MemoryEffect value);
[[nodiscard]] std::string_view to_string(ContractRisk value);

}  // namespace infrarsi
