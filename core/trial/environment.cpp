#include <algorithm>
#include <array>
#include <string_view>

#include "core/trial/run_trial.h"

namespace infrarsi {

namespace {

// What a training job needs of the user's shell. A trailing '*' is any rest.
constexpr std::array<std::string_view, 47> kStandard = {"PATH",
                                                        "HOME",
                                                        "USER",
                                                        "LOGNAME",
                                                        "SHELL",
                                                        "LANG",
                                                        "LANGUAGE",
                                                        "LC_*",
                                                        "TZ",
                                                        "TERM",
                                                        "TMPDIR",
                                                        "LD_LIBRARY_PATH",
                                                        "PYTHONPATH",
                                                        "PYTHONHASHSEED",
                                                        "PYTHONUTF8",
                                                        "VIRTUAL_ENV",
                                                        "CONDA_PREFIX",
                                                        "CONDA_DEFAULT_ENV",
                                                        "PYENV_*",
                                                        "CUDA_*",
                                                        "CUBLAS_*",
                                                        "CUDNN_*",
                                                        "NVIDIA_*",
                                                        "NCCL_*",
                                                        "TORCH_*",
                                                        "TORCHINDUCTOR_*",
                                                        "TORCHDYNAMO_*",
                                                        "PYTORCH_*",
                                                        "TRITON_*",
                                                        "OMP_*",
                                                        "GOMP_*",
                                                        "KMP_*",
                                                        "MKL_*",
                                                        "OPENBLAS_*",
                                                        "NUMEXPR_*",
                                                        "GLOO_*",
                                                        "UCX_*",
                                                        "FI_*",
                                                        "ROCR_*",
                                                        "HIP_*",
                                                        "HSA_*",
                                                        "HF_*",
                                                        "TRANSFORMERS_*",
                                                        "DS_*",
                                                        "MEGATRON_*",
                                                        "XLA_*",
                                                        "TOKENIZERS_PARALLELISM"};

// Doors to the user's other things; not even a wildcard of the contract opens them.
constexpr std::array<std::string_view, 8> kNever = {"HISTFILE", "SSH_*",         "DBUS_*",     "XAUTHORITY",
                                                    "GPG_*",    "PYTHONSTARTUP", "INFRARSI_*", "SUDO_*"};

bool name_matches(std::string_view pattern, std::string_view name) {
    if (!pattern.ends_with('*')) return pattern == name;
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

template <class List>
bool any_matches(const List& patterns, std::string_view name) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](std::string_view pattern) { return name_matches(pattern, name); });
}

bool looks_secret(std::string_view name) {
    std::string upper;
    for (const char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    // A tokenizer is no token.
    for (auto at = upper.find("TOKENIZER"); at != std::string::npos; at = upper.find("TOKENIZER")) upper.erase(at, 9);
    constexpr std::array<std::string_view, 7> kMarks = {"KEY",    "TOKEN",      "SECRET", "PASSWORD",
                                                        "PASSWD", "CREDENTIAL", "COOKIE"};
    return std::any_of(kMarks.begin(), kMarks.end(),
                       [&](std::string_view mark) { return upper.find(mark) != std::string::npos; });
}

bool passes(const std::string& name, const std::vector<std::string>& allowed) {
    if (any_matches(kNever, name)) return false;
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) return true;
    if (looks_secret(name)) return false;
    return any_matches(kStandard, name) || any_matches(allowed, name);
}

}  // namespace

std::map<std::string, std::string> trial_environment(const Contract& contract,
                                                     const std::map<std::string, std::string>& parent_env) {
    std::map<std::string, std::string> env;
    for (const auto& [name, value] : parent_env) {
        if (passes(name, contract.isolation.env_allow)) env[name] = value;
    }
    // No byte code is written into the tree or beside the libraries. PYTHONPYCACHEPREFIX stays unset: with a private
    // folder every trial would compile all of torch again, and the caches beside the libraries are read-only to a job.
    env["PYTHONDONTWRITEBYTECODE"] = "1";
    // Threads that spin while they wait make step times collapse on shared cores; the same in all arms, so no
    // advantage.
    const bool has_waiting =
        env.count("OMP_WAIT_POLICY") + env.count("GOMP_SPINCOUNT") + env.count("KMP_BLOCKTIME") > 0;
    if (!has_waiting) env["OMP_WAIT_POLICY"] = "PASSIVE";
    for (const auto& [name, value] : contract.launch.env) env[name] = value;
    return env;
}

}  // namespace infrarsi
