#pragma once
// Follows shell text as bash would, without running anything; the work behind read_launch (launch_script.h). Only that
// unit and its parts include this header. One object follows one launch: statements and conditions are walked in
// launch_follower.cpp, variables and commands in launch_follow_command.cpp, and what is kept of a command that trains
// is put together in launch_training.cpp.

#include <filesystem>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/repo/launch_command.h"
#include "core/repo/launch_script.h"
#include "core/repo/syntax_tree.h"

namespace infrarsi {

class LaunchFollower {
public:
    explicit LaunchFollower(const LaunchRequest& request);

    // As read_launch.
    [[nodiscard]] Expected<LaunchPlan> run();

private:
    // A Python command that was met on the way.
    struct Found {
        PeeledCommand peeled;
        std::vector<ShellWord> words;
        LaunchPlan plan;  // what is known at that point: env, cwd, cap, places
        int source = 0;
        int line = 0;
    };

    struct State : ShellState {
        std::optional<double> memory_cap_gib;
        bool ended = false;  // exit, or exec of something
    };

    // A text that is being followed: a source, or a string given to eval or `bash -c`.
    struct Frame {
        TracedText text;
        SyntaxTree tree;
    };

    struct Function {
        const Frame* frame = nullptr;
        TSNode body;
    };

    // ── texts ──

    void follow(TracedText text);
    std::string relative(const std::filesystem::path& path) const;
    // The source index of a script, read once; nothing when it cannot be read, and `missing_` says why.
    std::optional<int> open_source(const std::filesystem::path& path);
    TracedText slice(TSNode node) const;
    std::optional<TextSpan> span(TSNode node) const;
    std::string where(TSNode node) const;
    void note(std::string sentence);

    // ── statements: launch_follower.cpp ──

    void statements(TSNode parent);
    void statement(TSNode node);
    // Follows a node; the truth is its exit status where that can be known.
    Truth run_node(TSNode node);
    Truth run_kind(TSNode node, std::string_view type);
    Truth list(TSNode node);
    Truth test(TSNode node);
    Truth arithmetic(std::string_view expression);
    void branch(TSNode node);
    // Follows a branch that may not run; its effects stay only when it starts a training.
    bool trial_of(const std::vector<TSNode>& body);
    void choose_case(TSNode node);
    void loop(TSNode node);

    // ── variables and commands: launch_follow_command.cpp ──

    void assign(TSNode node, bool exported, std::optional<TextSpan> statement);
    void declare(TSNode node);
    void unset(TSNode node);
    void append_words(TSNode node, std::vector<ShellWord>& words);
    Truth command(TSNode node);
    Truth run_words(TSNode node, const std::vector<TSNode>& arguments, const std::vector<ShellWord>& words);
    Truth call(const Function& function, const std::vector<ShellWord>& words);
    Truth change_folder(TSNode node, const std::vector<ShellWord>& words);
    Truth set_options(const std::vector<ShellWord>& words);
    void limit(const std::vector<ShellWord>& words);
    void run_script(TSNode node, const std::vector<ShellWord>& words, const PeeledCommand& peeled);
    void set_prefix(const std::string& name, const ShellWord& word);

    // ── the training command: launch_training.cpp ──

    void train(TSNode node, const std::vector<TSNode>& arguments, const std::vector<ShellWord>& words,
               const PeeledCommand& peeled);
    void locate_entry(LaunchPlan& plan, const std::string& written, bool is_module) const;
    void place_flag(LaunchPlan& plan, TSNode node, const std::vector<TSNode>& arguments) const;
    void place_export(LaunchPlan& plan, TSNode node) const;
    Expected<LaunchPlan> choose();
    std::string place_of(const Found& found) const;

    const LaunchRequest& request_;
    State state_;
    std::vector<LaunchSource> sources_;
    std::list<Frame> frames_;  // stable addresses: functions keep them
    const Frame* frame_ = nullptr;
    TSNode statement_{};
    std::map<std::string, Function> functions_;
    std::vector<Found> found_;
    std::vector<std::string> notes_;
    std::optional<Error> failure_, missing_;
    int depth_ = 0, commands_ = 0;
};

}  // namespace infrarsi
