#include "core/trial/receipt.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/json.h"

using namespace infrarsi;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// Every field holds something that differs from its default.
Receipt full_receipt() {
    Receipt r;
    r.harness = "0.1.0";
    r.campaign = "c1";
    r.trial = "t7";
    r.role = "candidate";
    r.candidate = {{{"compile", true}, {"lr", 3e-4}, {"off", Value{}}}, {{"title ü", "--- a/x\n", "user"}}};
    r.contract_digest = "cd";
    r.tree_digest = "td";
    r.updates = 30;
    r.warmup = 10;
    r.execution = {.exit_code = std::nullopt,
                   .signal = 9,
                   .timed_out = "wall",
                   .cancelled = true,
                   .stopped = "after_updates",
                   .wall_start_s = 1.7e9 + 0.123456,
                   .wall_end_s = 1.7e9 + 9,
                   .duration_s = 0.1,
                   .error = "e",
                   .cpu_stall_s = 0.25,
                   .world = 2};
    r.isolation = {"bwrap", "none", true, "why"};
    r.series = {{.n = 1,
                 .t_s = 0.5,
                 .tokens = std::int64_t{1} << 40,
                 .samples = 4,
                 .seq_len = 128,
                 .data = "0011223344556677",
                 .loss = kNan,
                 .grad_norm = kInf,
                 .lr = -kInf,
                 .opt_steps = 1,
                 .reported_s = 0.1,
                 .phases = PhaseTimes{1, 2, 3, 4, 5.5}},
                {.n = 2}};
    r.model_digest = "md";
    r.trainable_params = 124'000'000'000;
    r.param_dtypes = {{"bf16", 10}, {"fp32", 20}};
    r.probes = {{4, {{"w", 1.0 / 3}}, {{"b", kNan}}, {{"w.exp_avg", -2}}}};
    r.audit = DtypeAudit{7, {{"mm", {{"bf16", 3}}}}, "bf16"};
    r.memory = {0.9, 1.2, "VmData"};
    r.oom = OutOfMemory{1, 2, 3, "line"};
    r.failures = {{"oom_host", "text", "stderr", 12, 3.5}};
    r.frozen_before = {{"loss.py", "aa"}};
    r.frozen_after = {{"loss.py", "missing"}};
    r.frozen_touched = {"loss.py"};
    r.effective = {{"micro_batch", std::int64_t{16}}};
    r.ineffective = {"micro_batch: requested 32, effective 16"};
    r.eval = CheckResult{"python eval.py", 0, 1.5, "n"};
    r.resume = CheckResult{"resume", 1, std::nullopt, "m"};
    r.tests = {{"pytest", 2, std::nullopt, "o"}};
    r.environment = {{"cpu", "x"}};
    r.disturbed = {5, 7};
    return r;
}

}  // namespace

TEST_CASE("a signed receipt reads back whole", "[trial]") {
    const Receipt receipt = full_receipt();
    const std::string text = sign_receipt(receipt, "key");
    const auto back = open_receipt(text, "key", "receipt.json");
    REQUIRE(back);
    CHECK(canonical_json(to_json(*back)) == canonical_json(to_json(receipt)));
    // The list of fields is shared by both directions; these show that values and not defaults came back.
    CHECK(std::isnan(*back->series.at(0).loss));
    CHECK(*back->series.at(0).grad_norm == kInf);
    CHECK(*back->series.at(0).lr == -kInf);
    CHECK(back->series.at(0).phases->other == 5.5);
    CHECK_FALSE(back->series.at(1).loss);
    CHECK_FALSE(back->execution.exit_code);
    CHECK(*back->execution.signal == 9);
    CHECK(*back->trainable_params == 124'000'000'000);
    CHECK(back->probes.at(0).params.at("w") == 1.0 / 3);
    CHECK(back->audit->matmul.at("mm").at("bf16") == 3);
    CHECK(back->execution.wall_start_s == 1.7e9 + 0.123456);
    CHECK(back->candidate.patches.at(0).title == "title ü");
    CHECK(sign_receipt(*back, "key") == text);
}

TEST_CASE("the form of a receipt is plain JSON", "[trial]") {
    const nlohmann::json json = to_json(full_receipt());
    CHECK(json["schema"] == "infrarsi-receipt-v1");
    CHECK(json["series"][0]["loss"] == "nan");
    CHECK(json["series"][0]["grad_norm"] == "inf");
    CHECK(json["series"][0]["lr"] == "-inf");
    CHECK(json["series"][1]["loss"].is_null());
    CHECK(json["execution"]["exit_code"].is_null());
    CHECK(to_json(Receipt{}).size() == json.size());
    CHECK(json.size() == 31);
}

TEST_CASE("any changed byte of a receipt is found", "[trial]") {
    const std::string text = sign_receipt(full_receipt(), "key");
    int accepted = 0;
    for (std::size_t i = 0; i + 1 < text.size(); i += 3) {
        std::string edited = text;
        edited[i] = edited[i] == '7' ? '8' : '7';
        if (edited == text) continue;
        const auto opened = open_receipt(edited, "key", "r.json");
        if (opened || opened.error().kind() != ErrorKind::corrupt) {
            ++accepted;
            UNSCOPED_INFO("byte " << i << " of " << text);
        }
    }
    CHECK(accepted == 0);
}

TEST_CASE("a receipt that is not signed by this key is corrupt", "[trial]") {
    const nlohmann::json body = to_json(full_receipt());
    const std::string signed_text = sign_receipt(full_receipt(), "key");
    for (const std::string& text :
         {canonical_json({{"receipt", body}}), canonical_json({{"receipt", body}, {"mac", ""}}),
          canonical_json({{"receipt", body}, {"mac", nullptr}}), canonical_json(body), std::string("[]"),
          std::string("3"), std::string(), signed_text.substr(0, signed_text.size() / 2)}) {
        const auto opened = open_receipt(text, "key", "r.json");
        REQUIRE_FALSE(opened);
        CHECK(opened.error().kind() == ErrorKind::corrupt);
        CHECK(opened.error().place()->path == "r.json");
    }
    CHECK(open_receipt(signed_text, "another key", "r.json").error().kind() == ErrorKind::corrupt);
}

TEST_CASE("a well signed receipt of another kind is told apart", "[trial]") {
    const auto signed_json = [](const nlohmann::json& body) {
        return canonical_json({{"receipt", body}, {"mac", hmac_sha256_hex("key", canonical_json(body))}});
    };
    nlohmann::json body = to_json(full_receipt());
    body["schema"] = "infrarsi-receipt-v9";
    CHECK(open_receipt(signed_json(body), "key", "r").error().kind() == ErrorKind::unsupported);

    body = to_json(full_receipt());
    body.erase("oom");
    auto opened = open_receipt(signed_json(body), "key", "r");
    CHECK(opened.error().kind() == ErrorKind::invalid_input);
    CHECK(opened.error().message() == "the key 'oom' is missing");

    body = to_json(full_receipt());
    body["series"][1]["tokens"] = "many";
    opened = open_receipt(signed_json(body), "key", "r");
    CHECK(opened.error().kind() == ErrorKind::invalid_input);
    CHECK(opened.error().message() == "'series[1].tokens' must be a whole number, not string");

    body = to_json(full_receipt());
    body["execution"]["world"] = std::int64_t{1} << 40;
    CHECK(open_receipt(signed_json(body), "key", "r").error().kind() == ErrorKind::invalid_input);
}
