#include "core/trial/checks.h"
#include "core/trial/run_trial.h"

using namespace infrarsi;

TEST_CASE("a trial sees the standard list and nothing that looks secret", "[trial]") {
    Contract contract;
    contract.isolation.env_allow = {"MY_DATA", "PROJ_*", "WANDB_API_KEY", "SSH_AUTH_SOCK"};
    contract.launch.env = {{"FROM_CONTRACT", "1"}, {"CUDA_VISIBLE_DEVICES", "3"}};
    const auto env = trial_environment(contract, {{"PATH", "/bin"},
                                                  {"HOME", "/h"},
                                                  {"LC_ALL", "C.UTF-8"},
                                                  {"CUDA_VISIBLE_DEVICES", "0,1"},
                                                  {"NCCL_DEBUG", "INFO"},
                                                  {"TOKENIZERS_PARALLELISM", "false"},
                                                  {"HF_HOME", "/hf"},
                                                  {"HF_TOKEN", "s"},
                                                  {"AWS_SECRET_ACCESS_KEY", "s"},
                                                  {"OPENAI_API_KEY", "s"},
                                                  {"WANDB_API_KEY", "let through by name"},
                                                  {"MY_DATA", "d"},
                                                  {"PROJ_DIR", "p"},
                                                  {"PROJ_PASSWORD", "s"},
                                                  {"proj_token", "s"},
                                                  {"RANDOM_THING", "x"},
                                                  {"HISTFILE", "x"},
                                                  {"SSH_AUTH_SOCK", "x"},
                                                  {"LD_PRELOAD", "x"},
                                                  {"PYTHONPYCACHEPREFIX", "x"},
                                                  {"INFRARSI_HOOK_SOCKET", "x"},
                                                  {"PYTHONHASHSEED", "7"}});
    CHECK(env == std::map<std::string, std::string>{{"PATH", "/bin"},
                                                    {"HOME", "/h"},
                                                    {"LC_ALL", "C.UTF-8"},
                                                    {"CUDA_VISIBLE_DEVICES", "3"},
                                                    {"NCCL_DEBUG", "INFO"},
                                                    {"TOKENIZERS_PARALLELISM", "false"},
                                                    {"HF_HOME", "/hf"},
                                                    {"WANDB_API_KEY", "let through by name"},
                                                    {"MY_DATA", "d"},
                                                    {"PROJ_DIR", "p"},
                                                    {"FROM_CONTRACT", "1"},
                                                    {"PYTHONHASHSEED", "7"},
                                                    {"PYTHONDONTWRITEBYTECODE", "1"},
                                                    {"OMP_WAIT_POLICY", "PASSIVE"}});
}

TEST_CASE("how threads wait is the user's choice where there is one", "[trial]") {
    Contract contract;
    CHECK(trial_environment(contract, {{"OMP_WAIT_POLICY", "ACTIVE"}}).at("OMP_WAIT_POLICY") == "ACTIVE");
    CHECK(trial_environment(contract, {{"KMP_BLOCKTIME", "1"}}).count("OMP_WAIT_POLICY") == 0);
    contract.launch.env["OMP_WAIT_POLICY"] = "ACTIVE";
    CHECK(trial_environment(contract, {}).at("OMP_WAIT_POLICY") == "ACTIVE");
}

TEST_CASE("the last value that an evaluation states is its metric", "[trial]") {
    CHECK(find_metric("loss=1.5\nloss: 1.25 ok\n", "loss") == 1.25);
    CHECK(find_metric(R"({"val_loss": 2.5e-1, "loss": 3})", "loss") == 3);
    CHECK(find_metric(R"({"val_loss": 2.5e-1, "loss": 3})", "val_loss") == 0.25);
    CHECK(find_metric("accuracy 0.75", "accuracy") == 0.75);
    CHECK(find_metric("acc = +7", "acc") == 7);
    CHECK_FALSE(find_metric("my-loss=3 losses=4 loss is fine", "loss"));
    CHECK_FALSE(find_metric("", "loss"));
}
