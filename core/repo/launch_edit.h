#pragma once
// Settings → text edits. A knob is changed where the job spells it: the flag's value in the script (through the
// variable or the array that holds it), the `export`, the key of the config file. The same edits are made for a trial
// and for `apply`, so what was measured is what is written (DESIGN §6).

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/contract/contract.h"
#include "core/repo/launch_script.h"

namespace infrarsi {

struct LaunchEdit {
    std::map<std::string, std::string> files;  // relative path → new text; only files that change
    std::string command;                       // the launch command after the change
    std::map<std::string, std::string> env;    // over launch.env, for variables that the contract's launch.env sets
    std::vector<std::string> notes;            // "train.sh:12 --micro-batch-size 2 → 4"
};

// Sets the knobs named in `settings`; others stay as they are. Setting what holds already changes nothing, so it is
// idempotent, and the reference gives back the identical text. Every edit is read back: the launch line must then hold
// the wanted value and nothing else may have changed, or another place is tried (the use instead of the variable, a
// later flag that overrides). Reads `source_root`, writes nothing. invalid_input: a name that is no knob, a place that
// cannot be edited, a value that needs quotes where none can stand; not_found: the script or the config file is
// missing. `overlay` holds texts that are read instead of the disk's (a patch that is not written yet); those that
// differ from the disk are among the files of the result. Cost: about 2 ms a changed knob.
[[nodiscard]] Expected<LaunchEdit> apply_settings(const Contract& contract, const std::filesystem::path& source_root,
                                                  const Settings& settings,
                                                  std::map<std::string, std::string> overlay = {});

// What the launch line says about a flag or variable now; nothing when it is absent there.
[[nodiscard]] std::optional<Value> spelled_value(const LaunchPlan& plan, const Knob& knob);

// A flag as it is written for a value: "--micro-batch-size 4", "--no-compile"; empty when it is to be absent.
[[nodiscard]] std::string spell_flag(const Knob& knob, const Value& value);

}  // namespace infrarsi
