#pragma once
// The parts of infrarsi.yaml that choose how a campaign goes rather than what the job is: search, llm, debate,
// requirements, experience, targets, doctor, isolation. Internal to core/contract.

#include "core/contract/contract.h"
#include "core/contract/yaml_reader.h"

namespace infrarsi {

// `top` is the whole file; `contract` gets what was read and keeps its defaults where nothing was, or nothing sound.
void read_choices(Problems& problems, const MapReader& top, Contract& contract);

}  // namespace infrarsi
