#include "core/verify/matrix.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/measure/noise.h"
#include "core/verify/loss_power.h"
#include "sample.h"

using namespace infrarsi;

namespace {

// The receipts that ship with the program, and the published key that signed them (seeds/receipts/README.md).
Receipt recorded(const std::string& name) {
    const auto folder = std::filesystem::path(INFRARSI_SOURCE_DIR) / "seeds/receipts";
    const auto key = read_file(folder / "key.txt").value();
    REQUIRE(key.ends_with('\n'));
    const auto text = read_file(folder / (name + ".json")).value();
    auto receipt = open_receipt(text, std::string_view(key).substr(0, key.size() - 1), name);
    INFO((receipt ? "" : receipt.error().describe()));
    REQUIRE(receipt);
    return *receipt;
}

ReferenceEvidence recorded_evidence() {
    ReferenceEvidence evidence;
    evidence.reference = recorded("reference");
    evidence.repeats = {recorded("repeat")};
    evidence.noise = estimate_noise({evidence.reference, evidence.repeats[0]});
    return evidence;
}

void check_matrix(const Receipt& candidate, const ReferenceEvidence& evidence) {
    const auto matrix = run_matrix(candidate, evidence, {});
    INFO((matrix ? "" : matrix.error().describe()));
    REQUIRE(matrix);
    int skipped_rows = 0;
    for (const auto& row : matrix->at("rows")) {
        INFO(row.dump());
        // The example job has no buffer that is updated, so that one row cannot be made from its receipts.
        const bool skipped = row.at("got") == "skipped";
        skipped_rows += skipped ? 1 : 0;
        CHECK((skipped || row.at("ok") == true));
    }
    CHECK(skipped_rows <= 1);
    CHECK(matrix->at("perturbed") >= 28);
    CHECK(matrix->at("perturbed") == matrix->at("perturbed_rejected"));
    CHECK(matrix->at("benign") >= 12);
    CHECK(matrix->at("benign") == matrix->at("benign_accepted"));
}

}  // namespace

TEST_CASE("the matrix on hand-made receipts", "[verify]") {
    check_matrix(sample::receipt(), sample::evidence());
}

TEST_CASE("the matrix on receipts of real runs", "[verify]") {
    check_matrix(recorded("candidate"), recorded_evidence());
}

TEST_CASE("the matrix needs a valid candidate", "[verify]") {
    auto receipt = sample::receipt();
    receipt.execution.exit_code = 1;
    const auto matrix = run_matrix(receipt, sample::evidence(), {});
    REQUIRE_FALSE(matrix);
    CHECK(matrix.error().kind() == ErrorKind::invalid_input);
    CHECK(matrix.error().message().find("exit code 1") != std::string::npos);
}

TEST_CASE("what the loss rule would accept", "[verify]") {
    auto evidence = sample::evidence();
    // 4.0 → 2.5 over the run: no learning and half the speed are both far outside 3 %.
    const auto strong = loss_power(evidence, {});
    CHECK_FALSE(strong.accepts_no_update);
    CHECK_FALSE(strong.accepts_half_rate);
    CHECK(strong.tolerance == Approx(0.03));

    InvariantRules loose;
    loose.tolerance = 0.25;
    for (auto& u : evidence.reference.series) {
        u.data.clear();
    }
    for (auto& u : evidence.repeats[0].series) {
        u.data.clear();
    }
    const auto half = loss_power(evidence, loose);
    CHECK_FALSE(half.accepts_no_update);
    CHECK(half.accepts_half_rate);

    for (auto& u : evidence.reference.series) {
        u.loss = 4.0 - 0.001 * u.n;
    }
    const auto none = loss_power(evidence, {});
    CHECK(none.accepts_no_update);
    CHECK(none.learned < 0.01);
    CHECK(none.sentence.find("decoration") != std::string::npos);

    for (auto& u : evidence.reference.series) {
        u.loss.reset();
    }
    CHECK(loss_power(evidence, {}).accepts_no_update);
}
