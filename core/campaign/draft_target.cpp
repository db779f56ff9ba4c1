#include "core/campaign/draft_target.h"

#include "core/base/files.h"
#include "core/repo/source_tree.h"

namespace infrarsi {
namespace {

namespace fs = std::filesystem;

std::string shell_quote(const std::string& path) {
    if (path.find_first_of(" \t'\"$`\\!*?[](){}<>|&;#~") == std::string::npos) return path;
    std::string result = "'";
    for (const char c : path) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

bool is_script_name(const std::string& path) {
    return path.ends_with(".sh") || path.ends_with(".bash") || path.ends_with(".slurm") || path.ends_with(".sbatch");
}

std::string command_for(const std::string& path, const DraftOptions& options) {
    std::string command = (path.ends_with(".py") ? "python3 " : "bash ") + shell_quote(path);
    if (!options.config.empty()) {
        command += options.config.ends_with(".py") ? " " + shell_quote(options.config)
                                                   : " --config " + shell_quote(options.config);
    }
    return command;
}

// Reads the launch with `root` as the project; an error, or no entry inside the project, means another root fits
// better.
Expected<LaunchPlan> read_at(const fs::path& root, const std::string& command) {
    LaunchRequest request;
    request.root = root;
    request.command = command;
    INFRARSI_ASSIGN(LaunchPlan plan, read_launch(request));
    if (plan.entry.empty() || plan.entry.starts_with("/") || plan.entry.starts_with("..")) {
        const std::string where = plan.sources.size() > 1 ? plan.sources[1].path : "the launch command";
        return fail_at(ErrorKind::not_found, {where},
                       "{} starts {}, which is not in {}; run infrarsi init on the folder that "
                       "holds both, or correct the path",
                       where, plan.entry_as_written, root.string());
    }
    return plan;
}

// A script or entry: its own folder is the project unless what it starts lies further up.
Expected<DraftTarget> target_file(const fs::path& file, const DraftOptions& options) {
    std::error_code ignored;
    const fs::path folder = file.parent_path();
    const auto top = git_top(folder);
    std::optional<Error> first;
    fs::path root = folder;
    for (int rounds = 0; rounds < 4; ++rounds) {
        const std::string relative = file.lexically_relative(root).generic_string();
        const std::string command = command_for(relative, options);
        auto plan = read_at(root, command);
        if (plan) return DraftTarget{root, command, std::move(*plan), {}};
        if (!first) first = std::move(plan).error();
        if ((top && root == *top) || root == root.parent_path()) break;
        root = root.parent_path();
    }
    return Unexpected(std::move(*first));
}

struct Candidate {
    std::string path;
    int rank = 0;  // lower is likelier
};

bool trains(std::string_view text) {
    for (const std::string_view sign :
         {".backward(", "Trainer(", ".fit(", "pretrain(", "train_step(", ".train_batch("}) {
        if (text.find(sign) != std::string_view::npos) return true;
    }
    return false;
}

int rank_of(const std::string& path) {
    const auto depth = static_cast<int>(std::count(path.begin(), path.end(), '/'));
    std::string stem = fs::path(path).stem().string();
    std::transform(stem.begin(), stem.end(), stem.begin(), [](unsigned char c) { return std::tolower(c); });
    int rank = depth * 10;
    if (!is_script_name(path)) rank += 4;
    if (stem == "train" || stem == "run" || stem == "launch" || stem == "pretrain") return rank;
    return rank + (stem.find("train") != std::string::npos ? 2 : 3);
}

std::vector<Candidate> candidates_in(const fs::path& root, const SourceTree& tree) {
    constexpr std::size_t kMostRead = 400;
    std::vector<Candidate> found;
    std::vector<std::pair<int, std::string>> files;
    for (const std::string& path : tree.files) files.emplace_back(rank_of(path), path);
    std::sort(files.begin(), files.end());
    std::size_t read = 0;
    for (const auto& [rank, path] : files) {
        const std::string stem = fs::path(path).stem().string();
        if (path.find("test") != std::string::npos || stem.starts_with("setup") || stem == "conftest") continue;
        if (++read > kMostRead) break;
        if (is_script_name(path)) {
            LaunchRequest request;
            request.root = root;
            request.command = "bash " + shell_quote(path);
            const auto plan = read_launch(request);
            if (plan && !plan->entry.empty()) found.push_back({path, rank});
        } else {
            const auto text = read_file(root / path, 1u << 20);
            if (text && trains(*text) && text->find("__main__") != std::string::npos) {
                found.push_back({path, rank});
            } else if (text && trains(*text) && text->find("\nexec(open(") != std::string::npos) {
                found.push_back({path, rank});
            }
        }
    }
    return found;
}

Expected<DraftTarget> target_folder(const fs::path& root, const DraftOptions& options) {
    INFRARSI_ASSIGN(const SourceTree tree, list_sources(root, {".sh", ".bash", ".slurm", ".sbatch", ".py"}));
    auto found = candidates_in(root, tree);
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return std::pair(a.rank, a.path) < std::pair(b.rank, b.path); });
    if (found.empty()) {
        return fail(
            ErrorKind::not_found,
            "no launch script or Python entry that trains was found in {}; name it with --entry, or give the launch "
            "line with --command",
            root.string());
    }
    if (found.size() > 1 && found[0].rank == found[1].rank) {
        std::string list;
        for (std::size_t i = 0; i < std::min<std::size_t>(8, found.size()); ++i) list += "\n  " + found[i].path;
        return fail(ErrorKind::invalid_input,
                    "several files in {} could be the job:{}\nname one with --entry, such as "
                    "--entry {}",
                    root.string(), list, found[0].path);
    }
    INFRARSI_ASSIGN(DraftTarget result, target_file(root / found[0].path, options));
    if (result.root != root) {
        if (auto plan = read_at(root, command_for(found[0].path, options))) {
            result = {root, command_for(found[0].path, options), std::move(*plan), {}};
        }
    }
    std::string others;
    for (std::size_t i = 1; i < std::min<std::size_t>(6, found.size()); ++i)
        others += (i > 1 ? ", " : "") + found[i].path;
    if (!others.empty()) {
        result.notes.push_back(
            fmt::format("{} is taken as the job; {} could be others (--entry chooses)", found[0].path, others));
    }
    return result;
}

}  // namespace

Expected<DraftTarget> find_target(const fs::path& target, const DraftOptions& options) {
    std::error_code ignored;
    if (!fs::exists(target, ignored)) {
        return fail_at(ErrorKind::not_found, {target.string()},
                       "there is no such file or folder; give the launch script, the "
                       "Python entry or the project's folder");
    }
    const bool is_folder = fs::is_directory(target, ignored);
    const fs::path root = is_folder ? target.lexically_normal() : target.parent_path();
    if (!options.command.empty()) {
        INFRARSI_ASSIGN(LaunchPlan plan, read_at(root, options.command));
        return DraftTarget{root, options.command, std::move(plan), {}};
    }
    if (!options.entry.empty()) {
        const fs::path entry = fs::path(options.entry).is_absolute() ? fs::path(options.entry) : root / options.entry;
        if (!fs::is_regular_file(entry, ignored)) {
            return fail_at(ErrorKind::not_found, {options.entry}, "the entry {} is not there; give a path inside {}",
                           options.entry, root.string());
        }
        const std::string relative = entry.lexically_normal().lexically_relative(root).generic_string();
        if (!relative.starts_with("..")) {
            const std::string command = command_for(relative, options);
            if (auto plan = read_at(root, command)) return DraftTarget{root, command, std::move(*plan), {}};
        }
        return target_file(entry.lexically_normal(), options);
    }
    return is_folder ? target_folder(root, options) : target_file(target.lexically_normal(), options);
}

}  // namespace infrarsi
