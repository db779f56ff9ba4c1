#include "core/repo/launch_edit.h"

#include "core/testing/temp_dir.h"

using namespace infrarsi;

namespace {

Value text(const char* value) {
    return std::string(value);
}
Value number(std::int64_t value) {
    return value;
}

Knob flag(const std::string& name, const std::string& spelling, Value reference, FlagForm form = FlagForm::value) {
    Knob knob;
    knob.name = name;
    knob.spelling = spelling;
    knob.reference = std::move(reference);
    knob.form = form;
    return knob;
}
Knob env(const std::string& name, const std::string& spelling, Value reference) {
    Knob knob = flag(name, spelling, std::move(reference));
    knob.kind = KnobKind::env;
    return knob;
}
Knob config(const std::string& name, const std::string& spelling, Value reference) {
    Knob knob = flag(name, spelling, std::move(reference));
    knob.kind = KnobKind::config;
    return knob;
}

struct Job {
    TempDir dir;
    Contract contract;

    Job(const std::map<std::string, std::string>& files, std::vector<Knob> knobs,
        const std::string& command = "bash train.sh")
        : dir(files) {
        if (!files.contains("train.py")) dir.write("train.py", "");
        contract.launch.command = command;
        contract.knobs = std::move(knobs);
    }
    [[nodiscard]] Expected<LaunchEdit> apply(const Settings& settings) const {
        return apply_settings(contract, dir.path(), settings);
    }
    // The script after the change, or the error.
    [[nodiscard]] std::string script(const Settings& settings) const {
        const auto edit = apply(settings);
        if (!edit) return "error: " + edit.error().describe();
        const auto file = edit->files.find("train.sh");
        return file == edit->files.end() ? dir.read("train.sh") : file->second;
    }
};

const char* const kScript = R"sh(#!/bin/bash
MB=2   # sequences
export OMP_NUM_THREADS=1
python train.py \
    --micro-batch "$MB" \
    --accum 8 \
    --compile \
    --lr=1e-3 \
    "$@"
)sh";

std::vector<Knob> usual_knobs() {
    return {flag("micro_batch", "--micro-batch", number(2)),
            flag("accum", "--accum", number(8)),
            flag("compile", "--compile", true, FlagForm::switch_),
            flag("checkpoint", "--checkpoint", false, FlagForm::negatable),
            flag("lr", "--lr", 1e-3, FlagForm::equals),
            flag("threads", "--threads", number(0)),
            env("omp", "OMP_NUM_THREADS", number(1)),
            env("malloc", "MALLOC_TRIM_THRESHOLD_", Value{})};
}

}  // namespace

TEST_CASE("each kind of flag is edited where it is written", "[repo]") {
    const Job job({{"train.sh", kScript}}, usual_knobs());
    const auto changed = [&](const Settings& settings, const std::string& from, const std::string& to) {
        std::string expected = kScript;
        const std::size_t at = expected.find(from);
        REQUIRE(at != std::string::npos);
        expected.replace(at, from.size(), to);
        CHECK(job.script(settings) == expected);
    };
    changed({{"micro_batch", number(4)}}, "MB=2 ", "MB=4 ");
    changed({{"accum", number(4)}}, "--accum 8", "--accum 4");
    changed({{"compile", false}}, " \\\n    --compile", "");
    changed({{"lr", 2e-3}}, "--lr=1e-3", "--lr=0.002");
    changed({{"checkpoint", true}}, "--lr=1e-3", "--lr=1e-3 \\\n    --checkpoint");
    changed({{"threads", number(4)}}, "--lr=1e-3", "--lr=1e-3 \\\n    --threads 4");
    changed({{"omp", number(2)}}, "OMP_NUM_THREADS=1", "OMP_NUM_THREADS=2");
    changed({{"omp", Value{}}}, "export OMP_NUM_THREADS=1\n", "");
    changed({{"malloc", number(-1)}}, "python train", "export MALLOC_TRIM_THRESHOLD_=-1\npython train");
    changed({{"accum", Value{}}}, " \\\n    --accum 8", "");
}

TEST_CASE("the reference gives back the identical text, and edits are idempotent", "[repo]") {
    const Job job({{"train.sh", kScript}}, usual_knobs());
    const auto reference = job.apply(job.contract.reference_settings());
    REQUIRE(reference);
    CHECK(reference->files.empty());
    CHECK(reference->notes.empty());
    CHECK(reference->command == "bash train.sh");

    const Settings settings{{"micro_batch", number(4)}, {"accum", number(4)},   {"compile", false},
                            {"checkpoint", true},       {"threads", number(2)}, {"malloc", number(65536)}};
    const auto first = job.apply(settings);
    REQUIRE(first);
    CHECK(first->notes.size() == 6);
    (void)job.dir.write("train.sh", first->files.at("train.sh"));
    const auto second = job.apply(settings);
    REQUIRE(second);
    CHECK(second->files.empty());
    // And back: every flag means again what it meant.
    const auto back = job.apply(job.contract.reference_settings());
    REQUIRE(back);
    const std::string& script = back->files.at("train.sh");
    CHECK(script.find("MB=2") != std::string::npos);
    CHECK(script.find("--no-checkpoint") != std::string::npos);
    CHECK(script.find("MALLOC") == std::string::npos);
}

TEST_CASE("notes name the line and both values", "[repo]") {
    const Job job({{"train.sh", kScript}}, usual_knobs());
    const auto edit = job.apply({{"accum", number(4)}});
    REQUIRE(edit);
    REQUIRE(edit->notes.size() == 1);
    CHECK(edit->notes[0] == "train.sh:6 --accum 8 → 4");
}

TEST_CASE("a variable that feeds another argument is not edited behind its back", "[repo]") {
    const std::string script = "MB=2\nTOTAL=16\npython train.py --mb $MB --accum $((TOTAL / MB)) --log run_$MB\n";
    const Job job({{"train.sh", script}}, {flag("mb", "--mb", number(2)), flag("accum", "--accum", number(8))});
    // --log hangs on MB too, so the use is edited.
    CHECK(job.script({{"mb", number(4)}, {"accum", number(4)}}) ==
          "MB=2\nTOTAL=16\npython train.py --mb 4 --accum 4 --log run_$MB\n");
    // Where the derived value is just what is wanted, the variable is the place.
    const std::string derived = "MB=2\npython train.py --mb $MB --accum $((16 / MB))\n";
    const Job pair({{"train.sh", derived}}, {flag("mb", "--mb", number(2)), flag("accum", "--accum", number(8))});
    CHECK(pair.script({{"accum", number(4)}, {"mb", number(4)}}) ==
          "MB=4\npython train.py --mb $MB --accum $((16 / MB))\n");
    CHECK(pair.script({{"mb", number(4)}}) == "MB=2\npython train.py --mb 4 --accum $((16 / MB))\n");
}

TEST_CASE("arrays, quoted values and unknown values have a way too", "[repo]") {
    const std::string script = R"sh(ARGS=(
    --workers "2"  # loaders
    --compile
    --name 'a b'
)
python train.py "${ARGS[@]}" --threads $(nproc)
)sh";
    const Job job({{"train.sh", script}},
                  {flag("workers", "--workers", number(2)), flag("compile", "--compile", true, FlagForm::switch_),
                   flag("threads", "--threads", number(8)), flag("name", "--name", text("a b"))});
    CHECK(job.script({{"workers", number(4)}}).find("--workers \"4\"  # loaders") != std::string::npos);
    CHECK(job.script({{"compile", false}}).find("--workers \"2\"  # loaders\n    --name 'a b'") != std::string::npos);
    CHECK(job.script({{"threads", number(4)}}).find("--threads 4\n") != std::string::npos);
    CHECK(job.script({{"name", text("c d")}}).find("--name 'c d'") != std::string::npos);
    CHECK(job.script({{"workers", Value{}}}).find("ARGS=(  # loaders\n    --compile") != std::string::npos);
}

TEST_CASE("a command line without a script is edited itself", "[repo]") {
    const Job job({},
                  {flag("mb", "--mb", number(2)), env("omp", "OMP_NUM_THREADS", Value{}),
                   flag("ckpt", "--gradient_checkpointing", true)},
                  "cd . && python train.py --mb 2 --gradient_checkpointing > log");
    const auto edit = job.apply({{"mb", number(4)}, {"omp", number(2)}, {"ckpt", false}});
    REQUIRE(edit);
    CHECK(edit->files.empty());
    CHECK(edit->command == "cd . && OMP_NUM_THREADS=2 python train.py --mb 4 --gradient_checkpointing False > log");
}

TEST_CASE("nanoGPT's equals form and launch.env are handled", "[repo]") {
    Job job({{"train.sh", "python train.py config/tiny.py --compile=False \"$@\"\n"}},
            {flag("compile", "--compile", false, FlagForm::equals),
             flag("bs", "--batch_size", number(12), FlagForm::equals),
             env("conf", "PYTORCH_CUDA_ALLOC_CONF", text("a:b"))});
    job.contract.launch.env["PYTORCH_CUDA_ALLOC_CONF"] = "a:b";
    CHECK(job.script({{"compile", true}, {"bs", number(6)}}) ==
          "python train.py config/tiny.py --compile=True --batch_size=6 \"$@\"\n");
    const auto edit = job.apply({{"conf", text("expandable_segments:True")}});
    REQUIRE(edit);
    CHECK(edit->files.empty());
    CHECK(edit->env.at("PYTORCH_CUDA_ALLOC_CONF") == "expandable_segments:True");
}

TEST_CASE("config knobs keep the rest of their file", "[repo]") {
    const std::string json = "{\n  // zero\n  \"zero\": {\"stage\": 2},\n  \"micro\": 4\n}\n";
    const std::string toml = "# job\n[training]\nlocal_batch_size = 8 # per rank\n\n[compile]\nenable = false\n";
    const Job job({{"ds.json", json}, {"job.toml", toml}, {"train.sh", "python train.py --config job.toml\n"}},
                  {config("stage", "ds.json#zero.stage", number(2)),
                   config("lbs", "job.toml#training.local_batch_size", number(8)),
                   config("compile", "job.toml#compile.enable", false),
                   config("mode", "job.toml#compile.mode", Value{}), config("wrong", "job.toml#none.mode", Value{})});
    const auto edit = job.apply({{"stage", number(1)}, {"lbs", number(4)}, {"compile", true}, {"mode", text("max")}});
    REQUIRE(edit);
    CHECK(edit->files.at("ds.json") == "{\n  // zero\n  \"zero\": {\"stage\": 1},\n  \"micro\": 4\n}\n");
    CHECK(edit->files.at("job.toml") ==
          "# job\n[training]\nlocal_batch_size = 4 # per rank\n\n[compile]\nenable = true\nmode = \"max\"\n");
    CHECK(job.apply(job.contract.reference_settings())->files.empty());
    CHECK_FALSE(job.apply({{"wrong", number(1)}}));
}

TEST_CASE("what cannot be set is an error that names the knob", "[repo]") {
    const Job job({{"train.sh", "python train.py --mb 2\n"}}, {flag("mb", "--mb", number(2))});
    CHECK(job.apply({{"none", number(1)}}).error().message().find("none") != std::string::npos);
    CHECK(job.apply({})->files.empty());
    const Job missing({}, {flag("mb", "--mb", number(2))});
    CHECK(missing.apply({{"mb", number(1)}}).error().kind() == ErrorKind::not_found);
}

TEST_CASE("the example's script is edited as a person would", "[repo]") {
    const auto example = std::filesystem::path(INFRARSI_SOURCE_DIR) / "examples/tinygpt";
    Contract contract;
    contract.launch.command = "bash train.sh";
    contract.knobs = {flag("micro_batch", "--micro-batch-size", number(2)),
                      flag("grad_accum", "--grad-accum", number(8)),
                      flag("ckpt", "--activation-checkpointing", true, FlagForm::negatable),
                      flag("compile", "--compile", false, FlagForm::switch_), env("omp", "OMP_NUM_THREADS", number(1))};
    const auto edit = apply_settings(contract, example,
                                     {{"micro_batch", number(4)},
                                      {"grad_accum", number(4)},
                                      {"ckpt", false},
                                      {"compile", true},
                                      {"omp", number(2)}});
    REQUIRE(edit);
    const std::string& script = edit->files.at("train.sh");
    for (const char* expected :
         {"MICRO_BATCH=4\n", "GRAD_ACCUM=4\n", "    --no-activation-checkpointing \\\n",
          "    --seed \"$SEED\" \\\n    --compile \\\n    \"$@\"", "export OMP_NUM_THREADS=2\n"}) {
        INFO(script);
        CHECK(script.find(expected) != std::string::npos);
    }
    CHECK(apply_settings(contract, example, contract.reference_settings())->files.empty());
}
