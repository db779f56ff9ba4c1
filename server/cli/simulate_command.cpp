#include "server/cli/simulate_command.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/simulate/oracle.h"
#include "server/cli/exit_codes.h"
#include "server/cli/output.h"
#include "server/cli/program.h"

namespace infrarsi {

using nlohmann::json;

namespace {

json optional_text(const std::optional<std::string>& text) {
    return text ? json(*text) : json(nullptr);
}

json knob_json(const sim::Knob& knob) {
    json values = json::array();
    for (const sim::KnobValue& value : knob.values) {
        values.push_back({{"value", to_json(value.value)}, {"legal", value.is_legal}});
    }
    return {{"name", knob.name},
            {"mechanism", optional_text(knob.mechanism)},
            {"ordered", knob.is_ordered},
            {"reference", to_json(knob.values[static_cast<std::size_t>(knob.reference)].value)},
            {"values", values}};
}

json atom_json(const sim::Workload& workload, const sim::Atom& atom) {
    json body = {{"atom", atom.name},
                 {"prior_log_gain", atom.prior_log_gain},
                 {"blind", atom.is_blind},
                 {"declared_gib", atom.declared_gib}};
    if (atom.patch) body["patch"] = workload.patches[static_cast<std::size_t>(*atom.patch)].id;
    if (atom.setting) {
        const sim::Knob& knob = workload.knobs[static_cast<std::size_t>(atom.setting->knob)];
        body["setting"] = {{knob.name, to_json(knob.values[static_cast<std::size_t>(atom.setting->value)].value)}};
    }
    return body;
}

json optimum_json(const sim::Workload& workload, sim::Levers levers) {
    const auto optimum = sim::find_optimum(workload, levers);
    if (!optimum) return nullptr;
    return {{"speedup", optimum->speedup},
            {"memory_gib", optimum->memory_gib},
            {"settings", to_json(sim::settings_of(workload, optimum->candidate))},
            {"patches", sim::patches_of(workload, optimum->candidate)}};
}

void print_line(const json& body) {
    print_out(canonical_json(body) + "\n");
}

}  // namespace

json answer_line(sim::Simulator& simulator, std::string_view line, ShowTruth show_truth) {
    const auto body = parse_json(line, "request");
    if (!body) return sim::invalid_answer(body.error().describe());
    const auto request = sim::request_from_json(simulator.workload(), *body);
    if (!request) return sim::invalid_answer(request.error().describe());
    const sim::Answer answer = simulator.answer(*request);
    json result = sim::to_json(answer);
    if (show_truth == ShowTruth::yes) {
        result["truth"] = sim::truth_json(simulator.workload(), request->candidate, answer);
    }
    return result;
}

json prior_json(const sim::Workload& workload, std::uint64_t seed) {
    json knobs = json::array();
    for (const sim::Knob& knob : workload.knobs) knobs.push_back(knob_json(knob));
    json patches = json::array();
    for (const sim::Patch& patch : workload.patches) {
        patches.push_back({{"id", patch.id}, {"mechanism", optional_text(patch.mechanism)}});
    }
    json atoms = json::array();
    for (const sim::Atom& atom : sim::draw_beliefs(workload, seed).atoms) atoms.push_back(atom_json(workload, atom));
    return {{"schema", "infrarsi-sim-prior-v1"},
            {"workload", workload.name},
            {"seed", seed},
            {"capacity_gib", workload.device.capacity_gib},
            {"max_attempts", workload.prior.max_attempts},
            {"knobs", knobs},
            {"patches", patches},
            {"atoms", atoms}};
}

json oracle_json(const sim::Workload& workload) {
    return {{"schema", "infrarsi-sim-oracle-v1"},
            {"workload", workload.name},
            {"oracle", optimum_json(workload, sim::Levers::knobs_and_patches)},
            {"knob_oracle", optimum_json(workload, sim::Levers::knobs)}};
}

Expected<int> run_simulate(const Program& program, const Options& options) {
    INFRARSI_ASSIGN(const sim::Workload workload,
                    sim::load_workload(program.working_dir / options.target, options.sets));
    if (options.show_prior || options.show_oracle) {
        print_line(options.show_prior ? prior_json(workload, options.simulated_seed) : oracle_json(workload));
        return kExitDone;
    }
    sim::Simulator simulator(workload, options.simulated_seed);
    const ShowTruth show_truth = options.show_truth ? ShowTruth::yes : ShowTruth::no;
    // Who asks waits for each answer, so each line is written out at once; where nobody reads any more, nobody asks.
    for (std::string line; std::ferror(stdout) == 0 && std::getline(std::cin, line);) {
        print_line(answer_line(simulator, line, show_truth));
    }
    return kExitDone;
}

}  // namespace infrarsi
