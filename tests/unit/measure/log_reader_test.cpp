#include "core/measure/log_reader.h"

#include <cmath>

using namespace infrarsi;

namespace {

std::optional<LogReading> read_one(std::string_view line) {
    return make_log_reader(Stack::ddp)->read(clean_line(line));
}

}  // namespace

TEST_CASE("log lines of plain training scripts", "[measure]") {
    struct Case {
        const char* line;
        std::int64_t step;
        double loss, time_s, norm, lr;  // 0: not there
    };
    const Case cases[] = {
        {"iter 20: loss 8.7312, time 245.31ms, mfu 38.12%", 20, 8.7312, 0.24531, 0, 0},
        {"[default0]:iter 150: loss 5.4410, time 244.86ms, mfu 38.17%", 150, 5.441, 0.24486, 0, 0},
        {"step    20 | loss: 8.731245 | lr 1.8000e-05 | norm: 2.3180 | dt: 336.12ms | tok/sec: 1559847.67", 20,
         8.731245, 0.33612, 2.318, 1.8e-5},
        {"step 00020/21400 (0.09%) | loss: 8.731245 | lrm: 1.00 | dt: 612.35ms | tok/sec: 856,203 | bf16_mfu: 48.21 | "
         "epoch: 1 pq: 0 rg: 3 | total time: 0.12m | eta: 218.1m",
         20, 8.731245, 0.61235, 0, 0},
        {"step 3 | loss 4.5605 | norm 2.951 | lr 6.0e-04 | dt 3212.0 ms | tok/s 717", 3, 4.5605, 3.212, 2.951, 6e-4},
        {"step=12 loss=3.4 grad_norm=1.5 lr=3e-4 step_time=0.25", 12, 3.4, 0.25, 1.5, 3e-4},
        {"{'step': 7, 'loss': 2.25, 'learning_rate': 0.001}", 7, 2.25, 0, 0, 0.001},
        {"\x1b[32mStep 100/2000\x1b[0m  Loss: 1.5  time_ms: 80", 100, 1.5, 0.08, 0, 0},
        {"2026-03-14 10:22:31 INFO update: 5, train_loss: 2.5, time 1.5s", 5, 2.5, 1.5, 0, 0},
    };
    for (const auto& item : cases) {
        INFO(item.line);
        const auto reading = read_one(item.line);
        REQUIRE(reading);
        CHECK(reading->step == item.step);
        CHECK(reading->loss.value_or(0) == Approx(item.loss));
        CHECK(reading->step_time_s.value_or(0) == Approx(item.time_s));
        CHECK(reading->grad_norm.value_or(0) == Approx(item.norm));
        CHECK(reading->lr.value_or(0) == Approx(item.lr));
    }
}

TEST_CASE("lines that are no training step", "[measure]") {
    for (const char* line :
         {"step 0: train loss 10.9321, val loss 10.9287", "eval 30 | loss 3.2110", "saving checkpoint at step 12",
          "GPU:0 | Epoch: 0 | Batchsize: 32 | Steps: 32", "325632 parameters | 2304 tokens per update | 1 rank(s)",
          "Map: 100%|##########| 5000/5000 [00:03<00:00, 1511.11 examples/s]",
          "Loading checkpoint shards:  50%|#####     | 2/4 [00:03<00:03, 1.51s/it]", "loss", "step", "step -5 loss 1",
          "step 1.5 loss 2", ""}) {
        INFO(line);
        CHECK_FALSE(read_one(line));
    }
}

TEST_CASE("a non-finite loss is kept", "[measure]") {
    const auto nan = read_one("step 3 | loss nan | dt 10 ms");
    REQUIRE(nan);
    REQUIRE(nan->loss);
    CHECK(std::isnan(*nan->loss));
    const auto inf = read_one("iter 3: loss -inf, time 12ms");
    REQUIRE(inf);
    CHECK(std::isinf(inf->loss.value_or(0)));
}

TEST_CASE("modded-nanogpt times are differences, not running means", "[measure]") {
    auto reader = make_log_reader(Stack::auto_);
    const auto first = reader->read("step:20/1695 train_time:1210ms step_avg:60.51ms");
    REQUIRE(first);
    CHECK_FALSE(first->step_time_s);
    const auto second = reader->read("step:22/1695 train_time:1410ms step_avg:64.09ms");
    REQUIRE(second);
    CHECK(second->step_time_s == Approx(0.1));
}

TEST_CASE("another loop's lines are not followed once a style is known", "[measure]") {
    auto reader = make_log_reader(Stack::auto_);
    CHECK(reader->read("step 1 | loss 3.0"));
    CHECK(reader->read("step 2 | loss 2.9"));
    CHECK_FALSE(reader->read("iter 900 loss 0.1"));
    CHECK(reader->read("step 3 | loss 2.8"));
}

TEST_CASE("prefixes and colours are removed", "[measure]") {
    CHECK(clean_line("[rank0]: [rank0]: step 1") == "step 1");
    CHECK(clean_line("(worker1, rank=1, pid=27522, ip=10.0.0.1) [rank4]: x") == "x");
    CHECK(clean_line("\x1b[38;2;180;60;0mgrad_norm:  1.2\x1b[39m") == "grad_norm:  1.2");
    CHECK(clean_line(" 10%\r 20%\r\n") == " 20%");
    CHECK(clean_line("3: loss") == "loss");
    CHECK(clean_line("12:30:01 start") == "12:30:01 start");
    CHECK(clean_line("\x1b[") == "");
}
