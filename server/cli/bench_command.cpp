// infrarsi bench search: ways of searching, compared on simulated jobs.

#include <thread>

#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/bench/bench_summary.h"
#include "core/bench/search_bench.h"
#include "server/cli/exit_codes.h"
#include "server/cli/output.h"
#include "server/cli/program.h"

namespace infrarsi {

using nlohmann::json;

namespace {

Expected<bench::SearchBench> read_plan(const Program& program, const Options& options) {
    bench::SearchBench plan;
    for (const std::string& file : options.workload_files) {
        INFRARSI_ASSIGN(sim::Workload workload, sim::load_workload(program.working_dir / file, options.sets));
        plan.workloads.push_back(std::move(workload));
    }
    for (const std::string& name : options.strategies) {
        INFRARSI_ASSIGN(bench::Strategy strategy, bench::find_strategy(name));
        const bool is_known = std::any_of(plan.strategies.begin(), plan.strategies.end(),
                                          [&](const bench::Strategy& known) { return known.name == name; });
        if (is_known) return fail(ErrorKind::invalid_input, "the strategy {} is named twice", name);
        plan.strategies.push_back(std::move(strategy));
    }
    plan.first_seed = options.first_seed;
    plan.seeds = options.last_seed - options.first_seed;
    plan.budget_units = options.budget_units;
    plan.threads = options.threads.value_or(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
    return plan;
}

}  // namespace

Expected<int> run_bench_search(const Program& program, const Options& options) {
    INFRARSI_ASSIGN(const bench::SearchBench plan, read_plan(program, options));
    const auto print = [&](const bench::CampaignScore& score) {
        if (options.json) print_out(canonical_json(bench::to_json(score)) + "\n");
    };
    INFRARSI_ASSIGN(const auto scores, bench::run_search_bench(plan, *program.clock, print));
    const auto summaries = bench::summarise(scores);
    if (!options.json) {
        print_out(bench::render_table(summaries));
        return kExitDone;
    }
    json cells = json::array();
    for (const bench::CellSummary& cell : summaries) cells.push_back(bench::to_json(cell));
    print_out(canonical_json({{"summary", cells}}) + "\n");
    return kExitDone;
}

}  // namespace infrarsi
