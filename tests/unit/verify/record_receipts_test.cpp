// Not a test: makes the signed receipts of tests/fixtures/receipts out of recorded trial folders. Run by hand:
// INFRARSI_RECORD=<folder with reference/, repeat/, micro4/> infrarsi_tests "[.record]".

#include <cstdlib>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/measure/trial_record.h"

using namespace infrarsi;

TEST_CASE("record receipts", "[.record]") {
    const char* from = std::getenv("INFRARSI_RECORD");
    REQUIRE(from != nullptr);
    const auto to = std::filesystem::path(INFRARSI_TESTS_DIR) / "fixtures/receipts";
    const std::pair<std::string, std::string> runs[] = {
        {"reference", "reference"}, {"repeat", "repeat"}, {"micro4", "micro_batch_4"}};
    for (const auto& [folder, name] : runs) {
        Receipt receipt;
        receipt.harness = "0.1.0";
        receipt.campaign = "recorded";
        receipt.trial = name;
        receipt.role = name == "micro_batch_4" ? "candidate" : "reference";
        if (name == "micro_batch_4") {
            receipt.candidate.settings = {{"grad_accum", std::int64_t{4}}, {"micro_batch", std::int64_t{4}}};
        }
        receipt.updates = 30;
        receipt.warmup = 10;
        REQUIRE(read_trial_record(std::filesystem::path(from) / folder, {}, {}, receipt));
        for (const char* file : {"loss.py", "evaluate.py", "data.py"}) {
            const auto digest = sha256_file(std::filesystem::path(from) / folder / "tree" / file).value();
            receipt.frozen_before[file] = receipt.frozen_after[file] = digest;
        }
        REQUIRE(write_file(to / (name + ".json"), sign_receipt(receipt, "infrarsi test key, not a secret")));
    }
}
