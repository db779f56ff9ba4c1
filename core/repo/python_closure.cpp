// Following imports within a project: the second half of python_options.h.
#include <deque>

#include "core/base/files.h"
#include "core/repo/python_options.h"

namespace infrarsi {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestSource = 4u << 20;
constexpr std::size_t kMostFiles = 400;

// Files that `dotted` may name, seen from `file`, relative to the root.
std::vector<std::string> candidates(const std::string& dotted, const std::string& file,
                                    const std::vector<std::string>& search) {
    std::vector<std::string> bases = search;
    std::string name = dotted;
    if (dotted.starts_with('.')) {
        fs::path folder = fs::path(file).parent_path();
        std::size_t dots = dotted.find_first_not_of('.');
        if (dots == std::string::npos) dots = dotted.size();
        for (std::size_t i = 1; i < dots; ++i) folder = folder.parent_path();
        bases = {folder.string()};
        name = dotted.substr(dots);
    }
    std::replace(name.begin(), name.end(), '.', '/');
    std::vector<std::string> result;
    for (const std::string& base : bases) {
        const std::string path = (fs::path(base) / name).lexically_normal().generic_string();
        if (path.starts_with("..")) continue;
        if (!name.empty()) result.push_back(path + ".py");
        result.push_back((fs::path(path) / "__init__.py").generic_string());
    }
    return result;
}

}  // namespace

Expected<PythonClosure> read_python_closure(const fs::path& root, const std::string& entry, const std::string& cwd) {
    std::error_code ignored;
    if (!fs::is_regular_file(root / entry, ignored)) {
        return fail_at(ErrorKind::not_found, {entry},
                       "the entry point {} is not there; correct the launch line or give "
                       "another one with --entry",
                       entry);
    }
    std::vector<std::string> search = {fs::path(entry).parent_path().generic_string(), cwd == "." ? "" : cwd, "",
                                       "src"};
    PythonClosure closure;
    std::map<std::string, int> depth_of{{entry, 0}};
    std::deque<std::string> queue{entry};
    while (!queue.empty() && closure.files.size() < kMostFiles) {
        const std::string path = std::move(queue.front());
        queue.pop_front();
        auto text = read_file(root / path, kLargestSource);
        if (!text) {
            if (path == entry) return wrap(std::move(text).error(), "reading the entry point");
            closure.notes.push_back(fmt::format("{} could not be read: {}", path, text.error().message()));
            continue;
        }
        PythonFile file = read_python(*text, path);
        file.depth = depth_of[path];
        std::vector<std::string> found;
        for (const std::string& dotted : file.imports) {
            for (const std::string& candidate : candidates(dotted, path, search)) {
                if (candidate == path || !fs::is_regular_file(root / candidate, ignored)) continue;
                if (std::find(found.begin(), found.end(), candidate) == found.end()) found.push_back(candidate);
                if (depth_of.emplace(candidate, file.depth + 1).second) queue.push_back(candidate);
                break;
            }
        }
        file.imports = std::move(found);
        closure.files.push_back(std::move(file));
    }
    if (!queue.empty()) {
        closure.notes.push_back(fmt::format("only the first {} files that {} imports were read", kMostFiles, entry));
    }
    return closure;
}

}  // namespace infrarsi
