// Not a test: makes the signed receipts of seeds/receipts out of recorded trial folders. Run by hand:
// INFRARSI_RECORD=<folder with reference/, repeat/, candidate/> infrarsi_tests "[.record]".

#include <cstdlib>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/measure/trial_record.h"

using namespace infrarsi;

TEST_CASE("record receipts", "[.record]") {
    const char* from = std::getenv("INFRARSI_RECORD");
    REQUIRE(from != nullptr);
    const auto to = std::filesystem::path(INFRARSI_SOURCE_DIR) / "seeds/receipts";
    const auto key = read_file(to / "key.txt").value();
    for (const std::string name : {"reference", "repeat", "candidate"}) {
        const auto folder = std::filesystem::path(from) / name;
        Receipt receipt;
        receipt.harness = "0.1.0";
        receipt.campaign = "recorded";
        receipt.trial = name;
        receipt.role = name == "candidate" ? "candidate" : "reference";
        if (name == "candidate") {
            receipt.candidate.settings = {{"grad_accum", std::int64_t{4}}, {"micro_batch", std::int64_t{4}}};
        }
        receipt.updates = 30;
        receipt.warmup = 10;
        REQUIRE(read_trial_record(folder, {}, {}, receipt));
        for (const char* file : {"loss.py", "evaluate.py", "data.py"}) {
            const auto digest = sha256_file(folder / "tree" / file).value();
            receipt.frozen_before[file] = receipt.frozen_after[file] = digest;
        }
        REQUIRE(write_file(to / (name + ".json"), sign_receipt(receipt, key.substr(0, key.find('\n')))));
    }
}
