#include <chrono>
#include <fstream>

#include "core/campaign/init.h"
#include "core/repo/launch_edit.h"
#include "core/testing/temp_dir.h"

using namespace infrarsi;

namespace {

Expected<Draft> draft(const std::filesystem::path& target, const DraftOptions& options = {},
                      HardwareProbe hardware = {4, 0}) {
    return draft_contract(target, options, hardware, shipped_mechanisms());
}

// "value value … | reference @mechanism" of a knob.
std::string knob_line(const Draft& draft, const std::string& name) {
    const Knob* knob = draft.contract.knob(name);
    if (knob == nullptr) {
        std::string names;
        for (const Knob& other : draft.contract.knobs) names += other.name + " ";
        return "none; there are " + names;
    }
    std::string line;
    for (const Value& value : knob->values) line += to_text(value) + " ";
    return line + "| " + to_text(knob->reference) + " @" + knob->mechanism;
}

bool has(const std::vector<std::string>& list, const std::string& item) {
    return std::find(list.begin(), list.end(), item) != list.end();
}

const char* const kTrain = R"py(
import argparse
import torch
from model import Net
from data import make_loader
from loss import lm_loss
p = argparse.ArgumentParser()
p.add_argument("--max-steps", type=int, default=12)
p.add_argument("--batch-size", type=int, default=4)
p.add_argument("--grad-accum", type=int, default=4)
p.add_argument("--compile", action="store_true")
p.add_argument("--lr", type=float, default=1e-3)
p.add_argument("--seed", type=int, default=1)
p.add_argument("--num-workers", type=int, default=0)
p.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
def main():
    loss.backward()
if __name__ == "__main__":
    main()
)py";

std::map<std::string, std::string> small_job() {
    return {{"train.py", kTrain},
            {"model.py", "import torch.nn as nn\nclass Net(nn.Module):\n  pass\n"},
            {"data.py", "def make_loader(): pass\n"},
            {"loss.py", "def lm_loss(): pass\n"},
            {"tests/test_a.py", "x = 1\n"},
            {"eval.py", "def evaluate(): pass\n"}};
}

}  // namespace

TEST_CASE("the example is drafted as its README says", "[init]") {
    const auto result = draft(std::filesystem::path(INFRARSI_SOURCE_DIR) / "examples/tinygpt");
    REQUIRE(result);
    const Contract& contract = result->contract;
    CHECK(contract.name == "tinygpt");
    CHECK(contract.launch.command == "bash train.sh");
    CHECK(contract.launch.stack == Stack::ddp);
    CHECK(contract.launch.updates == 30);
    CHECK(contract.launch.warmup == 10);
    CHECK(knob_line(*result, "micro_batch") == "1 2 4 8 16 | 2 @micro_batch");
    CHECK(knob_line(*result, "grad_accum") == "1 2 4 8 16 | 8 @grad_accum");
    CHECK(knob_line(*result, "compile") == "false true | false @compile");
    CHECK(knob_line(*result, "activation_checkpointing") == "false true | true @activation_recompute");
    CHECK(contract.knob("activation_checkpointing")->form == FlagForm::negatable);
    CHECK(knob_line(*result, "num_workers") == "0 1 2 4 | 0 @num_workers");
    CHECK(knob_line(*result, "omp_threads") == "1 2 4 | 1 @host.omp_threads");
    CHECK(contract.knob("malloc") != nullptr);
    CHECK(contract.knob("cuda_alloc") == nullptr);
    CHECK(contract.constraints == std::vector<std::string>{"micro_batch * grad_accum == 16"});
    for (const Knob& knob : contract.knobs) {
        for (const char* forbidden :
             {"--lr", "--seed", "--layers", "--seq-len", "--updates", "--weight-decay", "--dim"}) {
            CHECK(knob.spelling != forbidden);
        }
        CHECK(result->comments.knobs.contains(knob.name));
    }
    CHECK(has(contract.editable, "train.py"));
    CHECK(has(contract.editable, "model.py"));
    for (const char* frozen : {"data.py", "loss.py", "evaluate.py"}) {
        CHECK(has(contract.frozen, frozen));
        CHECK_FALSE(result->comments.scope.at(frozen).empty());
    }
    REQUIRE(contract.invariants.memory_cap_gib);
    CHECK(*contract.invariants.memory_cap_gib > 0.3);
    CHECK(*contract.invariants.memory_cap_gib < 2);
    // The written file is a valid contract that means the same.
    const auto again = parse_contract(write_contract_yaml(contract, result->comments), contract.file);
    INFO((again ? std::string() : again.error().describe()));
    REQUIRE(again);
    CHECK(contract_digest(*again) == contract_digest(contract));
    // What is drafted is what can be set, and the reference is today's text.
    CHECK(apply_settings(contract, contract.root, contract.reference_settings())->files.empty());
    for (const Knob& knob : contract.knobs) {
        for (const Value& value : knob.values) {
            INFO(knob.name << "=" << to_text(value));
            CHECK(apply_settings(contract, contract.root, {{knob.name, value}}));
        }
    }
}

TEST_CASE("a nanoGPT-like job is drafted from its globals and config file", "[init]") {
    const auto result = draft(std::filesystem::path(INFRARSI_SOURCE_DIR) / "tests/fixtures/nano_trainer/run.sh");
    REQUIRE(result);
    const Contract& contract = result->contract;
    CHECK(contract.launch.command == "bash run.sh");
    REQUIRE(contract.knob("micro_batch"));
    CHECK(contract.knob("micro_batch")->form == FlagForm::equals);
    CHECK(contract.knob("micro_batch")->spelling == "--batch_size");
    CHECK(knob_line(*result, "compile") == "false true | false @compile");
    CHECK(has(contract.frozen, "configurator.py"));
    CHECK(has(contract.frozen, "prepare.py"));
    for (const Knob& knob : contract.knobs) {
        for (const Value& value : knob.values) {
            INFO(knob.name << "=" << to_text(value));
            CHECK(apply_settings(contract, contract.root, {{knob.name, value}}));
        }
    }
}

TEST_CASE("a Python entry alone is a job", "[init]") {
    const TempDir dir(small_job());
    const auto result = draft(dir / "train.py");
    REQUIRE(result);
    CHECK(result->contract.launch.command == "python3 train.py");
    CHECK(result->contract.launch.updates == 12);
    CHECK(result->contract.launch.warmup == 4);
    CHECK(knob_line(*result, "micro_batch") == "1 2 4 8 16 | 4 @micro_batch");
    CHECK(result->contract.knob("dtype") == nullptr);
    CHECK(has(result->contract.editable, "model.py"));
    for (const char* frozen : {"data.py", "loss.py", "eval.py", "tests/test_a.py"})
        CHECK(has(result->contract.frozen, frozen));
    const auto edit = apply_settings(result->contract, dir.path(),
                                     {{"micro_batch", std::int64_t{8}}, {"grad_accum", std::int64_t{2}}});
    REQUIRE(edit);
    CHECK(edit->command == "python3 train.py --grad-accum 2 --batch-size 8");
}

TEST_CASE("folders are searched, and ambiguity lists the candidates", "[init]") {
    auto files = small_job();
    files["scripts/train.sh"] = "cd \"$(dirname \"$0\")/..\"\npython train.py --batch-size 2\n";
    const TempDir dir(files);
    const auto result = draft(dir.path());
    REQUIRE(result);
    CHECK(result->contract.launch.command == "python3 train.py");
    const auto script = draft(dir / "scripts/train.sh");
    REQUIRE(script);
    CHECK(script->contract.root == dir.path());
    CHECK(script->contract.launch.command == "bash scripts/train.sh");
    CHECK(script->contract.knob("micro_batch")->reference == Value{std::int64_t{2}});

    (void)dir.write("run.sh", "python train.py\n");
    (void)dir.write("launch.sh", "python train.py --batch-size 1\n");
    const auto several = draft(dir.path());
    REQUIRE_FALSE(several);
    CHECK(several.error().message().find("launch.sh") != std::string::npos);
    CHECK(several.error().message().find("--entry") != std::string::npos);
    DraftOptions options;
    options.entry = "launch.sh";
    const auto chosen = draft(dir.path(), options);
    REQUIRE(chosen);
    CHECK(chosen->contract.launch.command == "bash launch.sh");
    options = {};
    options.command = "OMP_NUM_THREADS=2 python train.py --batch-size 8";
    const auto command = draft(dir.path(), options);
    REQUIRE(command);
    CHECK(knob_line(*command, "omp_threads") == "1 2 4 | 2 @host.omp_threads");
}

TEST_CASE("what is missing is an error with the way out", "[init]") {
    const TempDir dir({{"notes.txt", "x"}, {"train.sh", "python missing.py\n"}, {"empty.sh", "echo\n"}});
    CHECK(draft(dir / "nowhere").error().kind() == ErrorKind::not_found);
    CHECK(draft(dir / "train.sh").error().message().find("missing.py") != std::string::npos);
    CHECK(draft(dir / "empty.sh").error().message().find("--entry") != std::string::npos);
    const auto folder = draft(dir.path());
    REQUIRE_FALSE(folder);
    CHECK(folder.error().message().find("--command") != std::string::npos);
    DraftOptions options;
    options.entry = "none.py";
    CHECK(draft(dir.path(), options).error().message().find("none.py") != std::string::npos);
}

TEST_CASE("paths with spaces and other letters work", "[init]") {
    std::map<std::string, std::string> files;
    for (const auto& [path, text] : small_job()) files["mein Räder [x]/" + path] = text;
    files["mein Räder [x]/train job.sh"] = "python train.py --batch-size 2\n";
    const TempDir dir(files);
    const auto result = draft(dir / "mein Räder [x]/train job.sh");
    REQUIRE(result);
    CHECK(result->contract.launch.command == "bash 'train job.sh'");
    const auto edit = apply_settings(result->contract, result->contract.root,
                                     {{"micro_batch", std::int64_t{4}}, {"grad_accum", std::int64_t{2}}});
    REQUIRE(edit);
    CHECK(edit->files.at("train job.sh") == "python train.py --batch-size 4 --grad-accum 2\n");
}

TEST_CASE("known stacks bring their own spellings", "[init]") {
    const TempDir megatron({{"pretrain_gpt.py", "import megatron\n"},
                            {"run.sh",
                             "ARGS=(--micro-batch-size 2 --global-batch-size 64 --train-iters 5000\n --bf16)\n"
                             "torchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} --num-workers 2\n"}});
    const auto first = draft(megatron / "run.sh", {}, {64, 8});
    REQUIRE(first);
    CHECK(first->contract.launch.stack == Stack::megatron);
    CHECK(first->contract.launch.gpus_per_node == 8);
    CHECK(knob_line(*first, "micro_batch") == "1 2 4 8 16 | 2 @micro_batch");
    CHECK(knob_line(*first, "global_batch") == "64 | 64 @global_batch");
    CHECK(first->contract.constraints == std::vector<std::string>{"global_batch % micro_batch == 0"});
    CHECK(knob_line(*first, "overlap_grad_reduce") == "false true | false @overlap_grad_reduce");
    CHECK(first->contract.knob("bf16") == nullptr);
    CHECK(first->contract.knob("cuda_alloc") != nullptr);

    const TempDir hf({{"sft.py", "from transformers import Trainer, HfArgumentParser\n"},
                      {"run.sh",
                       "accelerate launch sft.py --per_device_train_batch_size 4 --gradient_checkpointing "
                       "--learning_rate 1e-5 --deepspeed ds.json\n"},
                      {"ds.json", "{\"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true}}\n"}});
    const auto second = draft(hf / "run.sh", {}, {16, 2});
    REQUIRE(second);
    CHECK(second->contract.launch.stack == Stack::hf);
    CHECK(knob_line(*second, "micro_batch") == "1 2 4 | 4 @micro_batch");
    CHECK(knob_line(*second, "grad_accum") == "1 2 4 | 1 @grad_accum");
    CHECK(knob_line(*second, "gradient_checkpointing") == "false true | true @activation_recompute");
    CHECK(second->contract.knob("stage")->spelling == "ds.json#zero_optimization.stage");
    const auto edit =
        apply_settings(second->contract, hf.path(), {{"gradient_checkpointing", false}, {"stage", std::int64_t{1}}});
    REQUIRE(edit);
    CHECK(edit->files.at("run.sh").find("--gradient_checkpointing False --learning_rate") != std::string::npos);
    CHECK(edit->files.at("ds.json").find("\"stage\": 1") != std::string::npos);

    const TempDir titan({{"train.py", "import torchtitan\n"},
                         {"job.toml", "[training]\nlocal_batch_size = 8\nsteps = 1000\n[compile]\nenable = false\n"},
                         {"run.sh", "torchrun --nproc_per_node=8 train.py --job.config_file job.toml\n"}});
    const auto third = draft(titan / "run.sh", {}, {16, 8});
    REQUIRE(third);
    CHECK(third->contract.launch.stack == Stack::torchtitan);
    CHECK(third->contract.knob("enable")->spelling == "job.toml#compile.enable");
    CHECK(third->contract.knob("micro_batch") == nullptr);
    CHECK(third->contract.launch.updates == 30);
}

TEST_CASE("an existing contract keeps its words and gains what it lacks", "[init]") {
    const TempDir dir(small_job());
    (void)dir.write(
        "infrarsi.yaml",
        "schema: infrarsi-project-v1\nname: mine\nlaunch: {command: python3 train.py, updates: 12, warmup: 3}\n"
        "knobs:\n  fast: {flag: --compile, form: switch, values: [false, true], reference: false}\n"
        "scope: {editable: [model.py], frozen: [data.py]}\n");
    const auto result = draft(dir / "infrarsi.yaml");
    INFO((result ? std::string() : result.error().describe()));
    REQUIRE(result);
    CHECK(result->contract.name == "mine");
    CHECK(result->contract.launch.warmup == 3);
    CHECK(result->contract.knob("fast") != nullptr);
    CHECK(result->contract.knob("compile") == nullptr);
    CHECK(result->contract.knob("num_workers") != nullptr);
    CHECK(result->contract.editable == std::vector<std::string>{"model.py"});
}

TEST_CASE("a batch knob never comes alone", "[init]") {
    const TempDir dir(
        {{"train.py", "p.add_argument('--batch-size', type=int, default=8)\nloss.backward()\n__main__\n"}});
    const auto result = draft(dir / "train.py");
    REQUIRE(result);
    CHECK(result->contract.knob("micro_batch") == nullptr);
    CHECK(std::any_of(result->notes.begin(), result->notes.end(), [](const std::string& note) {
        return note.find("--batch-size is no knob") != std::string::npos;
    }));
}

TEST_CASE("a large repository is looked over in time", "[init]") {
    auto files = small_job();
    files["run.sh"] = "python train.py\n";
    const TempDir dir(files);
    for (int folder = 0; folder < 5; ++folder) {
        const auto path = dir / ("pkg" + std::to_string(folder));
        std::filesystem::create_directories(path);
        for (int file = 0; file < 400; ++file) {
            std::ofstream(path / ("m" + std::to_string(file) + ".py")) << "x = 1\n";
        }
    }
    const auto start = std::chrono::steady_clock::now();
    const auto result = draft(dir.path());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    REQUIRE(result);
    CHECK(result->contract.launch.command == "bash run.sh");
    CHECK(took.count() < 10);  // 0.6 s for 50,000 files in a debug build; 2,000 here, since making them is what is slow
}
