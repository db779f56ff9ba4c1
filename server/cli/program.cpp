#include "server/cli/program.h"

#include "core/campaign/campaign.h"

namespace infrarsi {

namespace fs = std::filesystem;

Expected<fs::path> find_contract(const Program& program, const std::string& target) {
    if (!target.empty()) {
        const fs::path path = program.working_dir / target;
        std::error_code ignored;
        if (!fs::exists(path, ignored)) return fail(ErrorKind::not_found, "there is no {}", path.string());
        if (fs::is_regular_file(path, ignored) && (path.extension() == ".yaml" || path.extension() == ".yml"))
            return path;
        const fs::path folder = fs::is_directory(path, ignored) ? path : path.parent_path();
        if (fs::exists(folder / "infrarsi.yaml", ignored)) return folder / "infrarsi.yaml";
        return fail(ErrorKind::not_found, "{} has no infrarsi.yaml: `infrarsi init {}` drafts one", folder.string(),
                    target);
    }
    for (fs::path folder = program.working_dir;; folder = folder.parent_path()) {
        std::error_code ignored;
        if (fs::exists(folder / "infrarsi.yaml", ignored)) return folder / "infrarsi.yaml";
        if (folder == folder.parent_path() || fs::exists(folder / ".git", ignored)) break;
    }
    return fail(ErrorKind::not_found, "there is no infrarsi.yaml in {} or above: `infrarsi init ./train.sh` drafts one",
                program.working_dir.string());
}

Expected<fs::path> find_run(const Program& program, const Options& options) {
    if (!options.target.empty()) {
        const fs::path path = program.working_dir / options.target;
        std::error_code ignored;
        if (fs::exists(path / "events.jsonl", ignored)) return path.lexically_normal();
        if (!fs::exists(path, ignored)) return fail(ErrorKind::not_found, "there is no run at {}", path.string());
        if (fs::exists(path / ".infrarsi" / "runs", ignored)) return newest_run(path / ".infrarsi" / "runs");
        return fail(ErrorKind::not_found, "{} is not a run: it has no events.jsonl", path.string());
    }
    if (!options.out.empty()) return newest_run(program.working_dir / options.out);
    INFRARSI_ASSIGN(const fs::path contract, find_contract(program, ""));
    return newest_run(contract.parent_path() / ".infrarsi" / "runs");
}

std::map<std::string, std::string> environment_map(char** env) {
    std::map<std::string, std::string> map;
    for (; env && *env; ++env) {
        const std::string_view entry(*env);
        const std::size_t equals = entry.find('=');
        if (equals != std::string_view::npos && equals > 0) {
            map[std::string(entry.substr(0, equals))] = std::string(entry.substr(equals + 1));
        }
    }
    return map;
}

}  // namespace infrarsi
