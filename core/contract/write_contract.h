#pragma once
// A fresh, commented infrarsi.yaml: what init writes for people to read and edit. A file that people already edited is
// changed through yaml_edit.h instead, which keeps their words.

#include <map>
#include <string>

#include "core/contract/contract.h"

namespace infrarsi {

struct ContractComments {
    std::string header;                          // above everything; lines are wrapped as given
    std::map<std::string, std::string> knobs;    // knob name → why these values
    std::map<std::string, std::string> scope;    // pattern → why it is editable or frozen
    std::map<std::string, std::string> entries;  // `launch.command`, `invariants.tolerance` → remark at that key
};

// Keys in the order of DESIGN §5; what is at its default is left out or stands as a comment that shows it. Reading the
// text gives the same contract (contract_json and contract_digest are equal) as long as `contract` is one that
// read_contract could have given.
[[nodiscard]] std::string write_contract_yaml(const Contract& contract, const ContractComments& comments);

}  // namespace infrarsi
