#include "core/repo/launch_script.h"

#include "core/testing/temp_dir.h"

using namespace infrarsi;

namespace {

// The script's launch, with its arguments joined by spaces.
struct Read {
    LaunchPlan plan;
    std::string arguments;
    std::string error;
};

Read read(const std::string& script, std::map<std::string, std::string> files = {},
          const std::string& command = "bash train.sh") {
    files["train.sh"] = script;
    for (const char* entry : {"train.py", "pretrain_gpt.py", "run_clm.py", "prepare.py"}) files.emplace(entry, "");
    const TempDir project(files);
    LaunchRequest request;
    request.root = project.path();
    request.command = command;
    auto plan = read_launch(request);
    Read result;
    if (!plan) {
        result.error = plan.error().describe();
        return result;
    }
    result.plan = *plan;
    for (const auto& word : plan->arguments) {
        result.arguments += (result.arguments.empty() ? "" : " ") + word.value.text();
    }
    return result;
}

// What stands where the value of `flag` is written.
std::string written(const LaunchPlan& plan, const std::string& flag) {
    const auto use = find_flag(plan, flag);
    if (!use || !use->has_value) return "<none>";
    const auto& word = plan.arguments[use->word + (use->equals ? 0 : 1)];
    const auto span = word.value.span(use->equals ? use->value_at : 0, word.value.text().size());
    if (!span) return "<computed>";
    const auto& source = plan.sources[static_cast<std::size_t>(span->source)];
    return fmt::format("{}:{} {}", source.path, line_at(source.text, span->begin),
                       source.text.substr(span->begin, span->end - span->begin));
}

}  // namespace

TEST_CASE("a plain script gives its entry, arguments and their places", "[repo]") {
    const auto result = read(R"sh(#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
export OMP_NUM_THREADS=4
ulimit -d 1258291
exec python -u train.py \
    --updates 30 \
    --micro-batch-size 2 \
    --lr=1e-3 "$@"
)sh");
    INFO(result.error);
    CHECK(result.plan.entry == "train.py");
    CHECK(result.plan.launcher == Launcher::python);
    CHECK(result.arguments == "--updates 30 --micro-batch-size 2 --lr=1e-3");
    CHECK(written(result.plan, "--micro-batch-size") == "train.sh:8 2");
    CHECK(written(result.plan, "--lr") == "train.sh:9 1e-3");
    CHECK(result.plan.env.at("OMP_NUM_THREADS").value.text() == "4");
    CHECK(result.plan.cwd == ".");
    REQUIRE(result.plan.memory_cap_gib);
    CHECK(*result.plan.memory_cap_gib == Approx(1.2).epsilon(1e-4));
    const auto& text = result.plan.sources[1].text;
    CHECK(text.substr(0, result.plan.new_flag.at.begin).ends_with("--lr=1e-3"));
    CHECK(result.plan.new_flag.before == " \\\n    ");
    CHECK(text.substr(result.plan.new_export.at.begin).starts_with("exec python"));
    CHECK(result.plan.new_export.after == "\n");
}

TEST_CASE("values are found through variables, defaults, arrays and strings", "[repo]") {
    const auto result = read(R"sh(MB=${MB:-2}
GA="16"
LR=3e-4
ARGS=(--micro-batch-size "$MB"   # per device
      --grad-accum ${GA})
ARGS+=(--lr $LR)
OPTS="--workers 4 --name 'x'"
python train.py "${ARGS[@]}" $OPTS --total $((MB * GA)) --seq="${SEQ-512}"
)sh");
    INFO(result.error);
    CHECK(result.arguments ==
          "--micro-batch-size 2 --grad-accum 16 --lr 3e-4 --workers 4 --name 'x' --total 32 --seq=512");
    CHECK(written(result.plan, "--micro-batch-size") == "train.sh:1 2");
    CHECK(written(result.plan, "--grad-accum") == "train.sh:2 16");
    CHECK(written(result.plan, "--lr") == "train.sh:3 3e-4");
    CHECK(written(result.plan, "--workers") == "train.sh:7 4");
    CHECK(written(result.plan, "--total") == "<computed>");
    CHECK(written(result.plan, "--seq") == "train.sh:8 512");
}

TEST_CASE("branches follow the defaults when they can be decided", "[repo]") {
    const std::string script = R"sh(NPROC=${1:-1}
if [ "$NPROC" -gt 1 ]; then
  torchrun --standalone --nproc_per_node=$NPROC train.py --ddp
elif [[ -n "$DEBUG" && $NPROC == 1 ]]; then
  python train.py --debug
else
  python train.py --single
fi
)sh";
    CHECK(read(script).arguments == "--single");
    const auto four = read(script, {}, "bash train.sh 4");
    CHECK(four.arguments == "--ddp");
    CHECK(four.plan.launcher == Launcher::torchrun);
    CHECK(four.plan.processes_per_node == 4);
    CHECK(read(script, {}, "DEBUG=1 bash train.sh").arguments == "--debug");
}

TEST_CASE("an undecidable branch takes the first that trains, and says so", "[repo]") {
    const auto result = read(R"sh(GPUS=$(nvidia-smi -L | wc -l)
if [ $GPUS -gt 1 ]; then
  torchrun --nproc_per_node $GPUS train.py --many
else
  python train.py --one
fi
)sh");
    INFO(result.error);
    CHECK(result.arguments == "--many");
    CHECK_FALSE(result.plan.processes_per_node);
    REQUIRE(result.plan.notes.size() >= 2);
    CHECK(result.plan.notes[0].find("train.sh:2") != std::string::npos);
}

TEST_CASE("launchers and wrappers are peeled off", "[repo]") {
    struct Case {
        const char* line;
        const char* entry;
        const char* arguments;
        Launcher launcher;
        std::optional<int> processes, nodes;
    };
    const Case cases[] = {
        {"torchrun --nnodes=2 --nproc-per-node 8 --rdzv_backend c10d --rdzv_endpoint h:1 train.py --a 1", "train.py",
         "--a 1", Launcher::torchrun, 8, 2},
        {"python -m torch.distributed.run --standalone --nproc_per_node=2 train.py --a",
         "train.py",
         "--a",
         Launcher::torchrun,
         2,
         {}},
        {"python3 -m torch.distributed.launch --nproc_per_node 4 --use_env train.py",
         "train.py",
         "",
         Launcher::torchrun,
         4,
         {}},
        {"accelerate launch --config_file acc.yaml --num_processes 8 --multi_gpu run_clm.py --bf16",
         "run_clm.py",
         "--bf16",
         Launcher::accelerate,
         8,
         {}},
        {"deepspeed --num_gpus 8 --master_port 29500 train.py --deepspeed ds.json",
         "train.py",
         "--deepspeed ds.json",
         Launcher::deepspeed,
         8,
         {}},
        {"srun -N 2 --ntasks-per-node=8 --cpu-bind=none python -u pretrain_gpt.py --tp 2",
         "pretrain_gpt.py",
         "--tp 2",
         Launcher::python,
         {},
         {}},
        {"uv run --frozen python train.py --x", "train.py", "--x", Launcher::python, {}, {}},
        {"poetry run torchrun --standalone train.py --x", "train.py", "--x", Launcher::torchrun, {}, {}},
        {"conda run -n python311 --no-capture-output python train.py --x", "train.py", "--x", Launcher::python, {}, {}},
        {"CUDA_VISIBLE_DEVICES=0 nohup nice -n 5 numactl --cpunodebind=0 python train.py --x > log 2>&1 &",
         "train.py",
         "--x",
         Launcher::python,
         {},
         {}},
        {"env OMP_NUM_THREADS=2 taskset -c 0-3 python3.11 -X dev train.py --x | tee log",
         "train.py",
         "--x",
         Launcher::python,
         {},
         {}},
        {"time uv run train.py --x", "train.py", "--x", Launcher::python, {}, {}},
        {"bash -c 'python train.py --x \"a b\"'", "train.py", "--x a b", Launcher::python, {}, {}},
        {"CMD=\"python train.py --x 1\"; eval $CMD", "train.py", "--x 1", Launcher::python, {}, {}},
        {"CMD='python train.py --x 1'\n$CMD --y", "train.py", "--x 1 --y", Launcher::python, {}, {}},
    };
    for (const Case& item : cases) {
        const auto result = read(item.line);
        INFO(item.line << " → " << result.error);
        CHECK(result.plan.entry == item.entry);
        CHECK(result.arguments == item.arguments);
        CHECK(result.plan.launcher == item.launcher);
        CHECK(result.plan.processes_per_node == item.processes);
        CHECK(result.plan.nodes == item.nodes);
    }
}

TEST_CASE("a Megatron-like script is read whole", "[repo]") {
    const auto result = read(R"sh(#!/bin/bash
# Runs the "345M" parameter model
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
MASTER_ADDR=localhost
NUM_NODES=1
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
CHECKPOINT_PATH=$1 #<Specify path>
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr $MASTER_ADDR
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 1536
    --train-iters 500000
    --bf16
    --clip-grad 1.0
)
MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size 8
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${TRAINING_ARGS[@]} \
    ${MODEL_PARALLEL_ARGS[@]}
)sh");
    INFO(result.error);
    CHECK(result.plan.entry == "pretrain_gpt.py");
    CHECK(result.plan.processes_per_node == 8);
    CHECK(result.plan.env.contains("CUDA_DEVICE_MAX_CONNECTIONS"));
    CHECK_FALSE(result.plan.env.contains("WORLD_SIZE"));
    CHECK(written(result.plan, "--micro-batch-size") == "train.sh:15 1");
    CHECK(written(result.plan, "--tensor_model_parallel_size") == "train.sh:22 8");
    CHECK(find_flag(result.plan, "--bf16"));
    CHECK(result.plan.new_flag.before == " \\\n    ");
}

TEST_CASE("functions, sourced files, cases, loops and option parsing are followed", "[repo]") {
    const auto result = read(R"sh(source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
usage() { echo "usage"; exit 1; }
while [[ $# -gt 0 ]]; do
  case "$1" in
    --gpus) GPUS="$2"; shift 2 ;;
    -h) usage ;;
    *) usage ;;
  esac
done
case "${MODE:-small}" in
  large|huge) BATCH=64 ;;
  sm*) BATCH=8 ;;
esac
launch() {
  local entry=$1; shift
  python "$entry" --batch_size $BATCH "$@"
}
python prepare.py --out data
cat <<EOF > config.json
{"a": "python train.py --not-this"}
EOF
launch train.py --size $SIZE
)sh",
                             {{"env.sh", "export SIZE=12\n"}});
    INFO(result.error);
    CHECK(result.arguments == "--batch_size 8 --size 12");
    CHECK(written(result.plan, "--batch_size") == "train.sh:12 8");
    CHECK(written(result.plan, "--size") == "env.sh:1 12");
}

TEST_CASE("a Python command line needs no script", "[repo]") {
    const auto result = read("", {}, "OMP_NUM_THREADS=2 python train.py --micro-batch-size 2");
    INFO(result.error);
    CHECK(result.plan.sources.size() == 1);
    CHECK(written(result.plan, "--micro-batch-size") == ":1 2");
    CHECK(result.plan.env.at("OMP_NUM_THREADS").value.text() == "2");
    CHECK(result.plan.new_flag.before == " ");
    CHECK(result.plan.new_export.after == " ");
}

TEST_CASE("modules and folders are resolved from where Python starts", "[repo]") {
    const auto module = read("cd sub dir\ncd \"sub dir\" && python -m pkg.train --a",
                             {{"sub dir/pkg/train.py", ""}, {"sub dir/x", ""}});
    INFO(module.error);
    CHECK(module.plan.module == "pkg.train");
    const auto nested = read("cd src && python train.py", {{"src/train.py", ""}});
    CHECK(nested.plan.entry == "src/train.py");
    CHECK(nested.plan.cwd == "src");
    const auto absolute =
        read("ROOT=$(cd \"$(dirname \"$0\")\" && pwd)\npython ${ROOT}/src/train.py", {{"src/train.py", ""}});
    CHECK(absolute.plan.entry == "src/train.py");
}

TEST_CASE("what does not train is an error that says what to do", "[repo]") {
    CHECK(read("echo hello\nls -l\n").error.find("no command that trains was found in train.sh") != std::string::npos);
    CHECK(read("python prepare.py\n").error.find("train.sh:1 prepare.py") != std::string::npos);
    CHECK(read("", {}, "bash missing.sh").error.find("--entry") != std::string::npos);
    CHECK(read(std::string("\x7f"
                           "ELF\0\0\1",
                           7))
              .error.find("is a program") != std::string::npos);
    CHECK(read("pip install -r requirements.txt; python -m pip list").error.find("--command") != std::string::npos);
}

TEST_CASE("broken and endless scripts do no harm", "[repo]") {
    const auto broken = read("if [ 1 -eq 1 ; then (((\npython train.py --a 1\n");
    CHECK(broken.error.find("no command that trains") != std::string::npos);
    CHECK(read("foo )\npython train.py --a 1\n").arguments == "--a 1");
    CHECK(read("f() { f; }\nf\npython train.py --a").arguments == "--a");
    CHECK(read("bash train.sh\npython train.py --a").arguments == "--a");
    CHECK(read("while true; do sleep 1; done\npython train.py --a").arguments == "--a");
    std::string nested = "X=";
    for (int i = 0; i < 3000; ++i) nested += "${A:-";
    nested += "1";
    for (int i = 0; i < 3000; ++i) nested += "}";
    CHECK(read(nested + "\npython train.py --a").arguments == "--a");
    std::string doubling = "X=aaaaaaaaaaaaaaaa\n";
    for (int i = 0; i < 40; ++i) doubling += "X=$X$X\n";
    CHECK(read(doubling + "python train.py --a").arguments == "--a");
    std::string deep;
    for (int i = 0; i < 2000; ++i) deep += "if true; then ";
    CHECK_NOTHROW(read(deep));
    std::string noise;
    for (int i = 0; i < 4000; ++i) noise.push_back(static_cast<char>(1 + (i * 7919) % 255));
    CHECK_NOTHROW(read(noise));
    CHECK_NOTHROW(read("${", {}, "$(("));
    CHECK_NOTHROW(read("", {}, "\"${x[@]:"));
}
