#pragma once
// What a launch line really starts. Shell text (the launch command and the scripts it calls) is read with tree-sitter
// and followed as bash would follow it, without running anything: variables, arrays, defaults, conditions, functions,
// sourced files, wrappers (srun, uv run, …) and launchers (torchrun, accelerate, deepspeed). The result knows where
// each argument and variable is written, so that a setting can be edited where a person wrote it. DESIGN §6 (init).

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/repo/shell_expand.h"
#include "core/repo/traced_text.h"

namespace infrarsi {

struct LaunchRequest {
    std::filesystem::path root;              // the project, absolute
    std::string cwd = ".";                   // of the command, relative to root
    std::string command;                     // "bash train.sh"
    std::map<std::string, std::string> env;  // what the command is started with
    // Text of files by path relative to root, read instead of the disk: a change that is not written yet.
    std::map<std::string, std::string> overlay;
};

// A text that takes part in the launch: source 0 is the command itself (its path is empty), others are scripts.
struct LaunchSource {
    std::string path;  // relative to the root, or absolute when it lies outside
    std::string text;
};

enum class Launcher { python, torchrun, accelerate, deepspeed };
[[nodiscard]] std::string_view to_string(Launcher launcher);

// An environment variable of the training process.
struct LaunchEnv {
    TracedText value;
    std::optional<TextSpan> assignment;  // `X=1`
    std::optional<TextSpan> statement;   // what goes when it is unset
};

// Where text can be put in.
struct InsertionPoint {
    TextSpan at;         // empty range
    std::string before;  // what separates it from the text before, such as " \\\n    "
    std::string after;
};

struct LaunchPlan {
    std::vector<LaunchSource> sources;
    std::string entry;  // the Python file, relative to the root; empty when it could not be found as a file
    std::string entry_as_written;
    std::string module;  // of `python -m module`
    Launcher launcher = Launcher::python;
    std::optional<int> processes_per_node, nodes;
    std::vector<std::string> wrappers;  // "srun", "uv run"
    std::string cwd;                    // where Python starts, relative to the root
    std::vector<ShellWord> arguments;   // after the entry
    std::map<std::string, LaunchEnv> env;
    std::optional<double> memory_cap_gib;  // of ulimit -v or -d
    TextSpan command;                      // the training command
    InsertionPoint new_flag;               // after the last argument
    InsertionPoint new_export;             // before the statement; in source 0 a prefix of the command
    std::vector<std::string> notes;        // what was decided or not understood, a sentence each
};

// invalid_input when no training command is found (the message lists what was found instead), or when a script that the
// command names is missing or unreadable; the place is the script. Cost: about 1 ms for a script of 200 lines.
[[nodiscard]] Expected<LaunchPlan> read_launch(const LaunchRequest& request);

// One use of a flag on the launch line.
struct FlagUse {
    std::size_t word = 0;      // index into arguments
    bool equals = false;       // --name=value
    bool has_value = false;    // a value follows, or stands after '='
    std::string value;         // as written; empty without one
    std::size_t value_at = 0;  // with equals: where the value begins in the word
};

// The last use of `flag` (then it is the one that counts). "--a-b" also finds "--a_b" when the former is not there.
[[nodiscard]] std::optional<FlagUse> find_flag(const LaunchPlan& plan, const std::string& flag);

// 1-based line of an offset.
[[nodiscard]] int line_at(std::string_view text, std::size_t offset);

}  // namespace infrarsi
