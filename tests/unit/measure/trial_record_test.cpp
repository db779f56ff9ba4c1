#include "core/measure/trial_record.h"

#include <cmath>

#include "core/base/files.h"
#include "core/measure/window.h"

using namespace infrarsi;

namespace {

// A trial folder made of texts, removed at the end.
class Folder {
public:
    Folder() : path_(std::filesystem::temp_directory_path() / ("infrarsi-record-" + std::to_string(getpid()))) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
        write("agent.json", kAgent);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    void write(const std::string& name, std::string_view text) { REQUIRE(write_file(path_ / name, text)); }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    static constexpr std::string_view kAgent =
        R"({"schema":"infrarsi-agent-v1","exit_code":0,"signal":null,"timed_out":null,"cancelled":false,"stopped":null,
            "wall_start_s":100.0,"wall_end_s":110.0,"duration_s":10.0,"updates_seen":2,
            "memory":{"peak_gib":0.9,"peak_rss_gib":0.7,"cap_gib":1.2,"source":"VmData","device_peak_gib":null},
            "oom":null,"sandbox":{"kind":"bwrap","frozen_readonly":true,"network":"none","why":""},
            "cpu":{"user_s":20.0,"sys_s":1.0,"stall_s":0.2},"leftover_killed":0,"error":null})";

private:
    std::filesystem::path path_;
};

Knob knob(std::string name, KnobKind kind, std::string spelling, std::string mechanism = {}) {
    Knob result;
    result.name = std::move(name);
    result.kind = kind;
    result.spelling = std::move(spelling);
    result.mechanism = std::move(mechanism);
    return result;
}

Receipt read(const Folder& folder, const Contract& contract = {}, const Settings& requested = {}) {
    Receipt receipt;
    receipt.updates = 2;
    const auto result = read_trial_record(folder.path(), contract, requested, receipt);
    INFO((result ? "" : result.error().describe()));
    REQUIRE(result);
    return receipt;
}

Error read_error(const Folder& folder) {
    Receipt receipt;
    auto result = read_trial_record(folder.path(), {}, {}, receipt);
    REQUIRE_FALSE(result);
    return result.error();
}

constexpr std::string_view kTwoRanks = R"({"t":1000000000,"rank":0,"k":"hello","world":2}
{"t":1000000000,"rank":1,"k":"hello","world":2}
{"t":1500000000,"rank":0,"k":"model","params":10,"digest":"abc","dtypes":{"float32":10}}
{"t":1500000000,"rank":1,"k":"model","params":10,"digest":"abc","dtypes":{"float32":10}}
{"t":2000000000,"rank":0,"k":"update","n":1,"tokens":8,"samples":2,"seq_len":4,"data":"ffffffffffffffff","loss":3.0,"grad_norm":1.5,"lr":0.1,"opt_steps":1,"phases":{"forward":0.1,"backward":0.2,"optimizer":0.1,"data":0.0,"other":0.0}}
{"t":2500000000,"rank":1,"k":"update","n":1,"tokens":8,"samples":2,"seq_len":4,"data":"0000000000000003","loss":5.0,"grad_norm":1.5,"lr":0.1,"opt_steps":1,"phases":{"forward":0.2,"backward":0.4,"optimizer":0.1,"data":0.0,"other":0.0}}
{"t":2500000001,"rank":0,"k":"state","n":1,"params":{"w":1.5},"buffers":{"mask":"-inf"},"optimizer":{"w.exp_avg":0.25}}
{"t":3000000000,"rank":1,"k":"update","n":2,"tokens":8,"samples":2,"seq_len":4,"data":"01","loss":"nan","opt_steps":2}
{"t":3250000000,"rank":0,"k":"audit","n":2,"matmul":{"mm":{"float32":3}},"autocast":null}
{"t":3250000000,"rank":0,"k":"update","n":2,"tokens":8,"samples":2,"seq_len":4,"data":"02","loss":2.0,"opt_steps":2}
{"t":4000000000,"rank":0,"k":"update","n":3,"tokens":8}
)";

}  // namespace

TEST_CASE("updates of ranks are merged", "[measure]") {
    Folder folder;
    folder.write("hook.jsonl", kTwoRanks);
    const auto receipt = read(folder);
    CHECK(receipt.execution.world == 2);
    REQUIRE(receipt.series.size() == 2);  // update 3 lacks a rank
    const auto& first = receipt.series[0];
    CHECK(first.t_s == Approx(2.5));  // the last rank
    CHECK(first.tokens == 16);
    CHECK(first.samples == 4);
    CHECK(first.seq_len == 4);
    CHECK(first.data == "0000000000000002");  // modulo 2^64
    CHECK(first.loss == Approx(4.0));
    REQUIRE(first.phases);
    CHECK(first.phases->backward == Approx(0.4));  // the slowest rank
    CHECK(std::isnan(receipt.series[1].loss.value_or(0)));
    CHECK(receipt.series[1].data == "0000000000000003");
    CHECK(receipt.model_digest == "abc");
    CHECK(receipt.trainable_params == 10);
    REQUIRE(receipt.probes.size() == 1);
    CHECK(receipt.probes[0].params.at("w") == 1.5);
    CHECK(std::isinf(receipt.probes[0].buffers.at("mask")));
    REQUIRE(receipt.audit);
    CHECK(receipt.audit->matmul.at("mm").at("float32") == 3);
    CHECK(receipt.disturbed == std::vector<int>{2});
    CHECK(receipt.memory.peak_gib == Approx(0.9));
    CHECK(receipt.isolation.frozen_readonly);
    CHECK(receipt.failures.empty());
}

TEST_CASE("a torn last line is fine and any other broken line is not", "[measure]") {
    Folder folder;
    const std::string good = R"({"t":1,"rank":0,"k":"hello","world":1})"
                             "\n";
    folder.write("hook.jsonl", good + R"({"t":2,"rank":0,"k":"upd)");
    CHECK(read(folder).series.empty());
    folder.write("hook.jsonl", good + "{\"t\":2,\n" + good);
    const auto broken = read_error(folder);
    CHECK(broken.kind() == ErrorKind::corrupt);
    REQUIRE(broken.place());
    CHECK(broken.place()->line == 2);
    folder.write("hook.jsonl", good + R"({"t":2,"rank":0,"k":"update","n":"one"})"
                                      "\n");
    CHECK(read_error(folder).kind() == ErrorKind::corrupt);
    folder.write("agent.json", "{");
    CHECK(read_error(folder).kind() == ErrorKind::corrupt);
    std::filesystem::remove(folder.path() / "agent.json");
    CHECK(read_error(folder).kind() == ErrorKind::not_found);
}

TEST_CASE("a job without the hook is read from its log lines", "[measure]") {
    Folder folder;
    folder.write("output.jsonl", R"({"t":500000000,"s":"o","l":"tokens per iteration will be: 4,096"})"
                                 "\n"
                                 R"({"t":1000000000,"s":"o","l":"iter 0: loss 4.5, time 900.00ms, mfu -100.00%"})"
                                 "\n"
                                 R"({"t":2000000000,"s":"o","l":"iter 1: loss 4.25, time 1000.00ms, mfu -100.00%"})"
                                 "\n");
    const auto receipt = read(folder);
    REQUIRE(receipt.series.size() == 2);
    CHECK(receipt.series[0].n == 1);
    CHECK(receipt.series[1].t_s == Approx(2.0));
    CHECK(receipt.series[1].loss == Approx(4.25));
    CHECK(receipt.series[1].tokens == 4096);
    CHECK(receipt.series[1].reported_s == Approx(1.0));
}

TEST_CASE("the job's own step times are matched to updates, counted from 0 or from 1", "[measure]") {
    Folder folder;
    folder.write("hook.jsonl", kTwoRanks);
    for (const int base : {0, 1, 1001}) {
        std::string lines;
        for (int i = 0; i < 2; ++i) {
            lines += fmt::format(R"({{"t":{},"s":"o","l":"step {} | loss 9.0 | dt {} ms"}})"
                                 "\n",
                                 2000000000 + i, base + i, 500 + i);
        }
        folder.write("output.jsonl", lines);
        const auto receipt = read(folder);
        INFO(base);
        CHECK(receipt.series[0].reported_s == Approx(0.5));
        CHECK(receipt.series[1].reported_s == Approx(0.501));
        CHECK(receipt.series[0].loss == Approx(4.0));  // the hook's counts
        CHECK(receipt.series[1].grad_norm == std::nullopt);
    }
}

TEST_CASE("failing lines are found in both streams, the root cause first", "[measure]") {
    Folder folder;
    folder.write(
        "output.jsonl",
        R"({"t":1,"s":"o","l":"starting"})"
        "\n"
        R"({"t":2,"s":"e","l":"Traceback (most recent call last):"})"
        "\n"
        R"({"t":3,"s":"o","l":"more"})"
        "\n"
        R"x({"t":3000000000,"s":"e","l":"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.00 GiB total capacity; 7.00 GiB already allocated; 1.00 GiB free; 8.00 GiB reserved in total by PyTorch)"})x"
        "\n");
    const auto receipt = read(folder);
    REQUIRE(receipt.failures.size() == 2);
    CHECK(receipt.failures[0].failure_class == "oom_device");
    CHECK(receipt.failures[0].stream == "stderr");
    CHECK(receipt.failures[0].line == 2);
    CHECK(receipt.failures[0].t_s == Approx(3.0));
    REQUIRE(receipt.oom);
    CHECK(receipt.oom->need_gib == Approx(11.0));
}

TEST_CASE("a traceback is named by its exception", "[measure]") {
    Folder folder;
    folder.write("output.jsonl", R"({"t":1,"s":"e","l":"Traceback (most recent call last):"})"
                                 "\n"
                                 R"x({"t":2,"s":"e","l":"  File \"train.py\", line 3, in <module>"})x"
                                 "\n"
                                 R"({"t":2,"s":"o","l":"another stream"})"
                                 "\n"
                                 R"x({"t":3,"s":"e","l":"OSError: [Errno 30] Read-only file system: 'loss.py'"})x"
                                 "\n");
    const auto receipt = read(folder);
    REQUIRE_FALSE(receipt.failures.empty());
    CHECK(receipt.failures[0].text == "OSError: [Errno 30] Read-only file system: 'loss.py'");
}

TEST_CASE("what was requested is compared with what the job held", "[measure]") {
    Folder folder;
    folder.write(
        "hook.jsonl",
        R"({"t":1,"rank":0,"k":"knobs","args":{"micro_batch_size":16,"compile":true,"recompute":false},"globals":{"fused":"on"},"env":{"OMP_NUM_THREADS":"1","NCCL_ALGO":null},"threads":1,"compiled_frames":0,"workers":0})"
        "\n");
    Contract contract;
    contract.knobs = {knob("micro_batch", KnobKind::flag, "--micro-batch-size"),
                      knob("compile", KnobKind::flag, "--compile", "compile.enable"),
                      knob("recompute", KnobKind::flag, "--recompute"),
                      knob("omp", KnobKind::env, "OMP_NUM_THREADS"),
                      knob("algo", KnobKind::env, "NCCL_ALGO"),
                      knob("fused", KnobKind::config, "conf/a.yaml#optim.fused"),
                      knob("unseen", KnobKind::flag, "--unseen")};
    const Settings requested = {{"micro_batch", std::int64_t{32}}, {"compile", true}, {"recompute", Value{}},
                                {"omp", std::int64_t{1}},          {"algo", Value{}}, {"fused", std::string("on")},
                                {"unseen", std::int64_t{3}}};
    const auto receipt = read(folder, contract, requested);
    REQUIRE(receipt.ineffective.size() == 2);
    CHECK(receipt.ineffective[0] == "micro_batch: requested 32, effective 16");
    CHECK(receipt.ineffective[1].starts_with("compile: requested true"));
    CHECK(to_text(receipt.effective.at("micro_batch")) == "16");
    CHECK_FALSE(receipt.effective.contains("unseen"));
    CHECK(receipt.effective.contains("fused"));
}

TEST_CASE("a recorded trial of the example job", "[measure]") {
    Receipt receipt;
    receipt.updates = 30;
    receipt.warmup = 10;
    const auto folder = std::filesystem::path(INFRARSI_TESTS_DIR) / "fixtures/trial";
    REQUIRE(read_trial_record(folder, {}, {}, receipt));
    CHECK(receipt.series.size() == 30);
    CHECK(receipt.series.front().tokens == 2304);
    CHECK(receipt.series.front().loss == Approx(4.8383).epsilon(1e-4));
    CHECK(receipt.series.back().reported_s.has_value());
    CHECK(receipt.probes.size() == 4);
    CHECK(receipt.disturbed == std::vector<int>{5, 6, 7, 30, 31});
    CHECK(receipt.failures.empty());
    const auto stats = window_stats(receipt);
    REQUIRE(stats);
    CHECK(stats->count == 19);
    CHECK(stats->has_phases);
    // Both clocks saw the same updates.
    REQUIRE(stats->reported_mean_s);
    CHECK(stats->mean_s == Approx(*stats->reported_mean_s).epsilon(0.05));
}
