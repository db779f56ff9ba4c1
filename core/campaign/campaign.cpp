#include "core/campaign/campaign.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/campaign/impl.h"
#include "core/contract/lock.h"
#include "core/measure/window.h"

namespace infrarsi {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string make_run_id(Clock& clock) {
    const auto now = static_cast<std::time_t>(clock.wall_s());
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
    return fmt::format("{}-{}", text, random_hex(2));
}

// Pairs of updates whose state is compared, late-bound and secret: one pair early, one in the middle, the last.
std::vector<int> choose_state_updates(int updates, const std::string& nonce) {
    Random random(std::stoull(nonce.substr(0, 15), nullptr, 16));
    std::set<int> chosen;
    const auto add_pair = [&](int last) {
        if (last >= 2 && last <= updates) chosen.insert({last - 1, last});
    };
    if (updates >= 4) add_pair(2 + static_cast<int>(random.below(static_cast<std::size_t>(std::min(4, updates - 2)))));
    if (updates >= 12) {
        add_pair(updates / 2 + static_cast<int>(random.below(static_cast<std::size_t>(updates / 4))));
    }
    add_pair(updates);
    if (updates == 1) chosen.insert(1);
    return {chosen.begin(), chosen.end()};
}

int choose_audit_update(const Launch& launch, const std::string& nonce) {
    Random random(std::stoull(nonce.substr(16, 15), nullptr, 16));
    const int last = std::max(2, launch.warmup);
    return launch.updates < 2 ? 0 : 2 + static_cast<int>(random.below(static_cast<std::size_t>(last - 1)));
}

TrialSetup make_setup(const Contract& contract, const CampaignState& state, const CampaignServices& services,
                      const CampaignOptions& options) {
    TrialSetup setup;
    setup.contract = &contract;
    setup.snapshot.dir = state.run_dir / "snapshot";
    setup.snapshot.digest = state.tree_digest;
    setup.campaign = state.run_id;
    setup.nonce = state.nonce;
    setup.state_at = state.state_at;
    setup.audit_at = state.audit_at;
    setup.adapters_dir = services.adapters_dir;
    setup.trials_dir = state.run_dir / "trials";
    setup.key_dir = services.key_dir;
    setup.parent_env = services.parent_env;
    setup.memory_cap_gib = contract.invariants.memory_cap_gib;
    setup.keep_tree = options.keep_trees;
    return setup;
}

Expected<void> check_frozen(const Contract& contract) {
    auto locked = read_lock(contract.root / "infrarsi.lock");
    if (!locked) {
        if (locked.error().kind() == ErrorKind::not_found)
            return {};  // nothing was locked; digests start with this run
        return Unexpected(std::move(locked).error());
    }
    INFRARSI_ASSIGN(Lock now, make_lock(contract));
    now.contract_digest = locked->contract_digest;  // people edit infrarsi.yaml; that is what it is for
    const auto differences = compare_locks(*locked, now);
    if (differences.empty()) return {};
    return fail(ErrorKind::frozen,
                "frozen files differ from infrarsi.lock: {}{}; restore them, or accept them as the job with `infrarsi "
                "init --force`",
                differences.front(), differences.size() > 1 ? fmt::format(" and {} more", differences.size() - 1) : "");
}

Expected<void> check_command(const Contract& contract) {
    if (contract.launch.command.empty()) {
        return fail_at(ErrorKind::invalid_input, {contract.file.string()},
                       "launch.command is empty: write the command that starts the job");
    }
    return {};
}

}  // namespace

json to_json(const Overrides& overrides) {
    json body = json::object();
    if (overrides.screens) body["screens"] = *overrides.screens;
    if (overrides.wallclock_s) body["wallclock_s"] = *overrides.wallclock_s;
    if (overrides.gpu_hours) body["gpu_hours"] = *overrides.gpu_hours;
    if (overrides.target_speedup) body["target_speedup"] = *overrides.target_speedup;
    if (overrides.target_mfu) body["target_mfu"] = *overrides.target_mfu;
    if (overrides.tolerance) body["tolerance"] = *overrides.tolerance;
    if (overrides.seed) body["seed"] = *overrides.seed;
    return body;
}

Overrides overrides_from_json(const json& body) {
    Overrides overrides;
    if (body.contains("screens")) overrides.screens = body["screens"].get<int>();
    if (body.contains("wallclock_s")) overrides.wallclock_s = body["wallclock_s"].get<double>();
    if (body.contains("gpu_hours")) overrides.gpu_hours = body["gpu_hours"].get<double>();
    if (body.contains("target_speedup")) overrides.target_speedup = body["target_speedup"].get<double>();
    if (body.contains("target_mfu")) overrides.target_mfu = body["target_mfu"].get<double>();
    if (body.contains("tolerance")) overrides.tolerance = body["tolerance"].get<double>();
    if (body.contains("seed")) overrides.seed = body["seed"].get<std::uint64_t>();
    return overrides;
}

void apply_overrides(Contract& contract, const Overrides& overrides) {
    if (overrides.screens) contract.budget.screens = overrides.screens;
    if (overrides.wallclock_s) contract.budget.wallclock_s = overrides.wallclock_s;
    if (overrides.gpu_hours) contract.budget.gpu_hours = overrides.gpu_hours;
    if (overrides.target_speedup) contract.budget.target_speedup = overrides.target_speedup;
    if (overrides.target_mfu) contract.budget.target_mfu = overrides.target_mfu;
    if (overrides.tolerance) contract.invariants.tolerance = *overrides.tolerance;
    if (overrides.seed) contract.seed = *overrides.seed;
}

Campaign::Campaign(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Campaign::Campaign(Campaign&&) noexcept = default;
Campaign& Campaign::operator=(Campaign&&) noexcept = default;
Campaign::~Campaign() = default;

const CampaignState& Campaign::state() const {
    return impl_->state;
}
const Contract& Campaign::contract() const {
    return impl_->contract;
}

Expected<Campaign> Campaign::start(const Contract& contract, const CampaignOptions& options,
                                   const CampaignServices& services) {
    auto impl = std::make_unique<Impl>();
    impl->options = options;
    impl->services = services;
    impl->contract = contract;
    apply_overrides(impl->contract, options.overrides);
    INFRARSI_TRY(check_command(impl->contract));
    INFRARSI_ASSIGN(impl->legal, LegalSet::of(impl->contract));
    INFRARSI_ASSIGN(const std::string contract_text, read_file(contract.file));

    CampaignState& state = impl->state;
    state.run_id = make_run_id(*services.clock);
    const fs::path runs = options.runs_dir.empty() ? contract.root / ".infrarsi" / "runs" : options.runs_dir;
    state.run_dir = runs / state.run_id;
    INFRARSI_ASSIGN(impl->lock, RunLock::of_project(contract.root, runs, state.run_id));
    INFRARSI_TRY(check_frozen(impl->contract));
    auto snapshot = take_snapshot(impl->contract, state.run_dir / "snapshot");
    if (!snapshot) {
        [[maybe_unused]] auto removed = remove_tree(state.run_dir);
        if (snapshot.error().kind() == ErrorKind::resource) {
            return fail(ErrorKind::resource, "{}; free some space, or give another disk with --out",
                        snapshot.error().describe());
        }
        return Unexpected(std::move(snapshot).error());
    }

    INFRARSI_ASSIGN(const std::string content, snapshot_content_digest(impl->contract, snapshot->dir));
    const auto environment = services.target->fingerprint();
    const std::string nonce = random_hex(16);
    const std::string digest = contract_digest(impl->contract);
    json patches = json::array();
    for (const auto& patch : options.patches) {
        patches.push_back({{"title", patch.title}, {"diff", patch.diff}, {"origin", patch.origin}});
    }
    INFRARSI_ASSIGN(impl->journal, Journal::create(state.run_dir, services.key, *services.clock));
    INFRARSI_TRY(impl->record("campaign_started",
                              {{"version", INFRARSI_VERSION},
                               {"run_id", state.run_id},
                               {"root", contract.root.string()},
                               {"contract_file", contract.file.string()},
                               {"contract_text", contract_text},
                               {"overrides", to_json(options.overrides)},
                               {"contract_digest", digest},
                               {"tree_digest", snapshot->digest},
                               {"snapshot_digest", content},
                               {"key", sha256_hex(digest + snapshot->digest + canonical_json(json(environment)))},
                               {"nonce", nonce},
                               {"state_at", choose_state_updates(impl->contract.launch.updates, nonce)},
                               {"audit_at", choose_audit_update(impl->contract.launch, nonce)},
                               {"environment", environment},
                               {"patches", std::move(patches)}}));
    INFRARSI_TRY(impl->record("session_started", json::object()));
    impl->session_start_s = services.clock->wall_s();
    impl->setup = make_setup(impl->contract, state, services, options);
    return Campaign(std::move(impl));
}

Expected<Campaign> Campaign::resume(const fs::path& run_dir, const CampaignOptions& options, Reopen reopen,
                                    const CampaignServices& services) {
    auto impl = std::make_unique<Impl>();
    impl->options = options;
    impl->services = services;
    std::error_code error;
    const fs::path dir = fs::canonical(run_dir, error);
    if (error) return fail(ErrorKind::not_found, "there is no run at {}: {}", run_dir.string(), error.message());
    INFRARSI_ASSIGN(const CampaignState before, load_state(dir, services.key));
    INFRARSI_ASSIGN(impl->lock, RunLock::of_project(before.root, dir.parent_path(), dir.filename().string()));
    INFRARSI_ASSIGN(impl->journal, Journal::open(dir, services.key, *services.clock));
    INFRARSI_ASSIGN(impl->state, fold(impl->journal->events(), dir));
    // Before anything is recorded: a session that cannot begin must not reopen the run.
    INFRARSI_ASSIGN(const Contract as_started, campaign_contract(impl->state));
    INFRARSI_TRY(check_snapshot(impl->state, as_started));
    json overrides = impl->state.overrides();
    overrides.update(to_json(options.overrides));
    json body = {{"overrides", overrides}};
    if (reopen == Reopen::search && impl->state.search_done) body["reopened"] = true;
    INFRARSI_TRY(impl->record("session_started", std::move(body)));
    INFRARSI_ASSIGN(impl->contract, campaign_contract(impl->state));
    INFRARSI_ASSIGN(impl->legal, LegalSet::of(impl->contract));
    impl->elapsed_before_s = impl->state.elapsed_s;
    impl->session_start_s = services.clock->wall_s();
    impl->setup = make_setup(impl->contract, impl->state, services, options);
    return Campaign(std::move(impl));
}

Expected<void> Campaign::Impl::record(const std::string& type, json body) {
    INFRARSI_TRY(journal->append(type, std::move(body)));
    const fs::path run_dir = state.run_dir;
    INFRARSI_ASSIGN(state, fold(journal->events(), run_dir));
    // A cache: whoever finds it missing or behind folds the journal again.
    [[maybe_unused]] auto cached = write_file(run_dir / "state.json", pretty_json(to_json(state)));
    return {};
}

double Campaign::Impl::elapsed_s() const {
    return elapsed_before_s + std::max(0.0, services.clock->wall_s() - session_start_s);
}

Expected<fs::path> newest_run(const fs::path& runs_dir) {
    std::error_code error;
    fs::path newest;
    for (const auto& entry : fs::directory_iterator(runs_dir, error)) {
        std::error_code ignored;
        // A run whose first event was never written has nothing to show.
        const auto bytes = fs::file_size(entry.path() / "events.jsonl", ignored);
        if (ignored || bytes == 0) continue;
        if (newest.empty() || entry.path().filename() > newest.filename()) newest = entry.path();
    }
    if (newest.empty()) {
        return fail(ErrorKind::not_found,
                    "there is no run under {}: start one with `infrarsi optimize` or `infrarsi run`",
                    runs_dir.string());
    }
    return newest;
}

Expected<CampaignState> load_state(const fs::path& run_dir, std::string_view key) {
    if (!fs::exists(run_dir / "events.jsonl")) {
        return fail(ErrorKind::not_found, "{} is not a run: it has no events.jsonl", run_dir.string());
    }
    INFRARSI_ASSIGN(const JournalRead read, read_journal(run_dir, key));
    if (read.events.empty()) {
        return fail(ErrorKind::corrupt, "the run {} ended before its first event was written: start a new one",
                    run_dir.string());
    }
    return fold(read.events, run_dir);
}

Expected<void> check_snapshot(const CampaignState& state, const Contract& contract) {
    const fs::path snapshot = state.run_dir / "snapshot";
    if (!fs::exists(snapshot)) {
        return fail(ErrorKind::not_found,
                    "the snapshot of {} is gone, so nothing can be taken from it: start a new run",
                    state.run_dir.string());
    }
    if (state.snapshot_digest.empty()) return {};
    INFRARSI_ASSIGN(const std::string now, snapshot_content_digest(contract, snapshot));
    if (digests_equal(now, state.snapshot_digest)) return {};
    return fail(ErrorKind::corrupt,
                "the files under {} are no longer those that the campaign measured: put them back, or start a new run",
                snapshot.string());
}

Expected<Contract> campaign_contract(const CampaignState& state) {
    INFRARSI_ASSIGN(Contract contract, parse_contract(state.contract_text, state.contract_file));
    apply_overrides(contract, overrides_from_json(state.overrides()));
    return contract;
}

}  // namespace infrarsi
