#pragma once
// What a Python program offers on its command line, read from its source without running it: argparse, click,
// dataclasses behind HfArgumentParser or tyro, and nanoGPT-like module globals that a configurator file overrides. The
// modules of the project that the entry imports are read too: they are the closure that scopes are drafted from.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/value.h"
#include "core/contract/contract.h"

namespace infrarsi {

enum class OptionSource { argparse, click, dataclass, global };

struct PythonOption {
    OptionSource source = OptionSource::argparse;
    std::string dest;                // the name in the program
    std::vector<std::string> flags;  // "--micro-batch-size", "-b"; the longest form first
    FlagForm form = FlagForm::value;
    std::optional<Value> fallback;  // the default; nothing when it is no literal
    std::string type;               // "int", "float", "str", "bool", or what stands there
    std::vector<Value> choices;
    std::string help;
    bool stores_false = false;  // a switch that turns off
    std::string path;           // relative to the root
    int line = 0;
};

struct PythonDefinition {
    std::string name;
    std::vector<std::string> bases;  // of a class
    bool is_class = false;
    int line = 0;
};

struct PythonFile {
    std::string path;                  // relative to the root
    int depth = 0;                     // 0 is the entry
    std::vector<std::string> imports;  // files of the project, relative to the root
    std::vector<PythonDefinition> definitions;
    std::vector<PythonOption> options;
    std::map<std::string, Value> globals;  // module-level literals
    std::vector<std::string> modules;      // top-level names of what is imported, such as "torch"
    std::size_t bytes = 0;
};

struct PythonClosure {
    std::vector<PythonFile> files;  // the entry first, then by depth
    std::vector<std::string> notes;

    [[nodiscard]] bool imports(const std::string& module) const;
    // Options of the entry and of modules at most two imports away; the entry's win over equal flags.
    [[nodiscard]] std::vector<PythonOption> options() const;
};

// Follows imports from `entry` (relative to `root`) within the project: at most 400 files, each under 4 MiB. not_found
// when the entry is missing, io when it cannot be read. Cost: about 1 ms for 1,000 lines.
[[nodiscard]] Expected<PythonClosure> read_python_closure(const std::filesystem::path& root, const std::string& entry,
                                                          const std::string& cwd = ".");

// One text, its imports unresolved.
[[nodiscard]] PythonFile read_python(std::string_view text, const std::string& path);

}  // namespace infrarsi
