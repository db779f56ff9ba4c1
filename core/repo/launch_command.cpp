#include "core/repo/launch_command.h"

#include <charconv>

namespace infrarsi {
namespace {

std::string base_name(const std::string& path) {
    return path.substr(path.find_last_of('/') + 1);
}

bool is_python(const std::string& name) {
    return name == "python" || name == "python3" || name == "pypy3" ||
           (name.starts_with("python3.") && name.find_first_not_of("0123456789.", 7) == std::string::npos);
}

bool is_shell(const std::string& name) {
    return name == "bash" || name == "sh" || name == "zsh" || name == "dash";
}

bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// Programs that start what follows them, after options whose arity we need not know.
bool is_wrapper(const std::string& name) {
    return is_one_of(
        name, {"exec",      "time",        "nohup",    "env",        "numactl",     "taskset", "nice",    "ionice",
               "stdbuf",    "timeout",     "sudo",     "srun",       "mpirun",      "mpiexec", "uv",      "poetry",
               "pipenv",    "conda",       "mamba",    "micromamba", "pdm",         "hatch",   "rye",     "pixi",
               "apptainer", "singularity", "nsys",     "ncu",        "setsid",      "chrt",    "command", "builtin",
               "unbuffer",  "catchsegv",   "xvfb-run", "caffeinate", "jemalloc.sh", "ipexrun", "then"});
}

bool is_assignment(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) return false;
    for (std::size_t i = 0; i < equals; ++i) {
        if (std::isalnum(static_cast<unsigned char>(text[i])) == 0 && text[i] != '_') return false;
    }
    return std::isdigit(static_cast<unsigned char>(text[0])) == 0;
}

std::optional<int> small_number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
    return value;
}

// Launcher options without a value; every other one that starts with a dash takes the next word.
bool is_bare_launcher_option(const std::string& option) {
    return is_one_of(option, {"--standalone",
                              "--no-python",
                              "--no_python",
                              "-m",
                              "--module",
                              "--run-path",
                              "--run_path",
                              "--use-env",
                              "--use_env",
                              "--multi_gpu",
                              "--multi-gpu",
                              "--cpu",
                              "--tpu",
                              "--use_deepspeed",
                              "--use_fsdp",
                              "--use_megatron_lm",
                              "--debug",
                              "-q",
                              "--quiet",
                              "--same_network",
                              "--dynamo_use_fullgraph",
                              "--dynamo_use_dynamic",
                              "--mpirun",
                              "--no_local_rank",
                              "--force_multi",
                              "--save_pid",
                              "--enable_each_rank_log",
                              "--bind_cores_to_rank",
                              "-h",
                              "--fsdp_forward_prefetch",
                              "--signals_to_handle_default"});
}

class Peeler {
public:
    explicit Peeler(const std::vector<ShellWord>& words) : words_(words) {}

    PeeledCommand run() {
        std::size_t at = 0;
        for (int rounds = 0; at < words_.size() && rounds < 16; ++rounds) {
            const std::string name = base_name(text(at));
            if (is_assignment(text(at))) {
                result_.env.emplace_back(text(at).substr(0, text(at).find('=')), words_[at]);
                ++at;
            } else if (is_python(name)) {
                python(at + 1);
                break;
            } else if (name == "torchrun" || name == "torchx") {
                launcher(at + 1, Launcher::torchrun);
                break;
            } else if (name == "accelerate" && at + 1 < words_.size() && text(at + 1) == "launch") {
                launcher(at + 2, Launcher::accelerate);
                break;
            } else if (name == "accelerate-launch") {
                launcher(at + 1, Launcher::accelerate);
                break;
            } else if (name == "deepspeed" || name == "ds") {
                launcher(at + 1, Launcher::deepspeed);
                break;
            } else if (is_shell(name) || name == "source" || name == ".") {
                shell(at + 1);
                break;
            } else if (is_wrapper(name)) {
                result_.wrappers.push_back(
                    name == "uv" || name == "poetry" || name == "pipenv" || name == "pdm" ? name + " run" : name);
                at = after_wrapper(at);
            } else {
                script_or_program(at);
                break;
            }
        }
        rate();
        return std::move(result_);
    }

private:
    const std::string& text(std::size_t index) const { return words_[index].value.text(); }

    // The next word that is a program we know; options of wrappers have too many forms to list.
    std::size_t after_wrapper(std::size_t at) const {
        const bool is_env = base_name(text(at)) == "env";
        for (std::size_t i = at + 1; i < words_.size(); ++i) {
            const std::string name = base_name(text(i));
            if (is_env && is_assignment(text(i))) return i;
            if (is_python(name) || is_shell(name) || is_wrapper(name) || name == "torchrun" || name == "deepspeed" ||
                name == "accelerate" || name.ends_with(".sh") || name.ends_with(".py")) {
                // `conda run -n python …` is rare; a name after -n, -p or --name is a value.
                const bool is_value = is_one_of(text(i - 1), {"-n", "-p", "--name", "--prefix", "-J", "--job-name"});
                if (!is_value) return i;
            }
        }
        return words_.size();
    }

    void python(std::size_t at) {
        while (at < words_.size()) {
            const std::string& word = text(at);
            if (word == "-m") {
                ++at;
                if (at >= words_.size()) return;
                if (is_one_of(text(at), {"torch.distributed.run", "torch.distributed.launch"})) {
                    return launcher(at + 1, Launcher::torchrun);
                }
                if (is_one_of(text(at), {"accelerate.commands.launch", "accelerate.commands.accelerate_cli"})) {
                    return launcher(at + (text(at).ends_with("cli") ? 2 : 1), Launcher::accelerate);
                }
                if (text(at) == "deepspeed.launcher.runner") return launcher(at + 1, Launcher::deepspeed);
                if (text(at) == "infrarsi_hook") {
                    ++at;
                    continue;
                }
                result_.is_module = true;
                return entry(at);
            }
            if (word == "-c" || word == "-") return;
            if (word == "-X" || word == "-W") {
                at += 2;
            } else if (word.starts_with("-")) {
                ++at;
            } else {
                return entry(at);
            }
        }
    }

    void launcher(std::size_t at, Launcher kind) {
        result_.launcher = kind;
        while (at < words_.size()) {
            const std::string& word = text(at);
            if (word == "run" && kind == Launcher::torchrun) {
                ++at;
            } else if (word == "--") {
                ++at;
            } else if (!word.starts_with("-")) {
                return entry(at);
            } else {
                if (word == "-m" || word == "--module") result_.is_module = true;
                at += launcher_option(at);
            }
        }
    }

    // How many words the option takes; remembers the numbers of processes and nodes.
    std::size_t launcher_option(std::size_t at) {
        const std::string& word = text(at);
        const std::size_t equals = word.find('=');
        std::string name = word.substr(0, equals);
        for (char& c : name) {
            if (c == '_') c = '-';
        }
        std::size_t count = 1;
        std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
        if (equals == std::string::npos && !is_bare_launcher_option(word)) {
            if (at + 1 < words_.size()) value = text(at + 1);
            count = value.ends_with(".py") && !name.ends_with("file") ? 1 : 2;
        }
        if (is_one_of(name, {"--nproc-per-node", "--num-gpus", "--num-processes", "--n-gpus"})) {
            result_.processes_per_node = small_number(value);
        } else if (is_one_of(name, {"--nnodes", "--num-nodes", "--num-machines"})) {
            result_.nodes = small_number(value.substr(0, value.find(':')));
        }
        return count;
    }

    void shell(std::size_t at) {
        while (at < words_.size() && text(at).starts_with("-")) {
            const std::string& option = text(at);
            if (option.find('c') != std::string::npos && !option.starts_with("--")) {
                if (at + 1 >= words_.size()) return;
                result_.kind = PeeledCommand::Kind::shell_text;
                result_.entry = at + 1;
                return;
            }
            at += option == "-o" ? 2 : 1;
        }
        if (at >= words_.size()) return;
        result_.kind = PeeledCommand::Kind::script;
        result_.entry = at;
    }

    void script_or_program(std::size_t at) {
        const std::string& word = text(at);
        if (word.ends_with(".py")) return entry(at);
        if (word.ends_with(".sh") || word.ends_with(".bash") || word.ends_with(".slurm") || word.ends_with(".sbatch")) {
            result_.kind = PeeledCommand::Kind::script;
            result_.entry = at;
        } else if (base_name(word) == "sbatch") {
            for (std::size_t i = at + 1; i < words_.size(); ++i) {
                if (text(i).starts_with("-")) continue;
                result_.kind = PeeledCommand::Kind::script;
                result_.entry = i;
                return;
            }
        }
    }

    void entry(std::size_t at) {
        if (!words_[at].value.known() && !text(at).ends_with(".py")) return;
        result_.kind = PeeledCommand::Kind::training;
        result_.entry = at;
    }

    void rate() {
        if (result_.kind != PeeledCommand::Kind::training) return;
        const std::string& path = text(result_.entry);
        std::string name = base_name(path);
        if (result_.is_module) name = path;
        for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        result_.score = result_.launcher == Launcher::python ? 1 : 3;
        const auto has = [&](std::initializer_list<std::string_view> words) {
            return std::any_of(words.begin(), words.end(),
                               [&](std::string_view word) { return name.find(word) != std::string::npos; });
        };
        if (has({"train", "finetune", "sft", "dpo", "grpo", "run_clm", "run_mlm", "speedrun"})) result_.score += 4;
        if (has({"main", "run", "launch", "start"})) result_.score += 1;
        const bool prepares =
            has({"prepare", "preprocess", "download", "convert", "tokeniz", "eval", "infer", "generate", "sample",
                 "export", "plot", "report", "setup", "test", "benchmark_", "upload", "merge"});
        if (prepares && !has({"train.py", "pretrain.py", "finetune.py"})) result_.score -= 5;
        if (result_.is_module &&
            is_one_of(path, {"pip", "venv", "http.server", "json.tool", "pytest", "unittest", "black", "ruff", "mypy",
                             "compileall", "ensurepip", "site", "timeit", "wandb"})) {
            result_.kind = PeeledCommand::Kind::other;
        }
    }

    const std::vector<ShellWord>& words_;
    PeeledCommand result_;
};

}  // namespace

PeeledCommand peel_command(const std::vector<ShellWord>& words) {
    return Peeler(words).run();
}

}  // namespace infrarsi
