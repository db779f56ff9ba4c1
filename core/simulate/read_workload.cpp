// The workload file's blocks beside its levers, and the order in which it is read.

#include <cmath>

#include "core/base/files.h"
#include "core/simulate/override.h"
#include "core/simulate/workload_block.h"

namespace infrarsi::sim {

namespace {

constexpr std::string_view kSchema = "infrarsi-workload-v1";
constexpr std::int64_t kMostUpdates = 100'000;
constexpr std::int64_t kMostDevices = 1'000'000;
constexpr std::int64_t kLargeCount = std::int64_t{1} << 53;  // exact as a JSON number

Block block_of(const Block& file, const std::string& key, std::vector<std::string> known) {
    return {file.problems(), file.required(key), std::move(known)};
}

void read_device(const Block& file, Device& device) {
    const Block block = block_of(file, "device", {"model", "count", "nodes", "capacity_gib", "context_gib"});
    if (!block) return;
    device.model = block.text("model");
    device.count = static_cast<int>(block.whole("count", 1, kMostDevices));
    device.nodes = static_cast<int>(block.whole("nodes", 1, kMostDevices));
    device.capacity_gib = block.number("capacity_gib", kPositive);
    device.context_gib = block.number("context_gib", kNotNegative);
    if (device.count % device.nodes != 0) {
        file.problems().add(block.place(), "device.count {} is not a multiple of device.nodes {}", device.count,
                            device.nodes);
    }
}

void read_series(const Block& job, const std::string& key, LearningSeries& series, double* half_life) {
    std::vector<std::string> known = {"initial", "floor", "data_noise", "rounding"};
    if (half_life) known.push_back("half_life");
    const Block block(job.problems(), job.required(key), known);
    if (!block) return;
    series.initial = block.number("initial", kAnyNumber);
    series.floor = block.number("floor", kAnyNumber);
    series.data_noise = block.number("data_noise", kNotNegative);
    series.rounding = block.number("rounding", kNotNegative);
    if (half_life) *half_life = block.number("half_life", kPositive);
}

void read_job(const Block& file, Job& job) {
    const Block block = block_of(file, "job",
                                 {"step_time_s", "updates", "warmup", "sequence_length", "tokens_per_update",
                                  "parameters", "model_flops_per_update", "peak_flops_per_device", "precision_menu",
                                  "dtypes", "learning_rate", "loss", "grad_norm", "frozen"});
    if (!block) return;
    job.step_time_s = block.number("step_time_s", kPositive);
    job.updates = static_cast<int>(block.whole("updates", 1, kMostUpdates));
    job.warmup = static_cast<int>(block.whole("warmup", 0, job.updates - 1));
    job.sequence_length = block.whole("sequence_length", 1, kLargeCount);
    job.tokens_per_update = block.whole("tokens_per_update", 1, kLargeCount);
    job.parameters = block.whole("parameters", 1, kLargeCount);
    if (block.optional("model_flops_per_update")) {
        job.model_flops_per_update = block.number("model_flops_per_update", kPositive);
    }
    if (block.optional("peak_flops_per_device")) {
        job.peak_flops_per_device = block.number("peak_flops_per_device", kPositive);
    }
    job.precision_menu = read_texts(file.problems(), block.required("precision_menu"));
    job.dtypes = block.numbers(block.required("dtypes"), kZeroToOne);
    job.learning_rate = block.number("learning_rate", kNotNegative);
    read_series(block, "loss", job.loss, &job.half_life);
    read_series(block, "grad_norm", job.grad_norm, nullptr);
    job.frozen = read_texts(file.problems(), block.required("frozen"));
}

void read_shares(const Block& file, PerPhase& shares) {
    const Block block = block_of(file, "phases", {kPhaseNames.begin(), kPhaseNames.end()});
    if (!block) return;
    double sum = 0;
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
        const auto share = block.read(std::string(kPhaseNames[p]), kZeroToOne);
        if (!share) return;
        shares[p] = *share;
        sum += *share;
    }
    if (std::abs(sum - 1) > 1e-9) {
        file.problems().add(block.place(), "the shares of phases sum to {:.10g}; they must sum to 1", sum);
    }
}

void read_memory(const Block& file, Memory& memory) {
    const Block block =
        block_of(file, "memory",
                 {"base_gib", "activation_gib", "thrash_from", "thrash_slowdown", "reading_noise", "oom_request"});
    if (!block) return;
    memory.base_gib = block.number("base_gib", kNotNegative);
    memory.activation_gib = block.number("activation_gib", kNotNegative);
    memory.thrash_from = block.number("thrash_from", kZeroToOne);
    memory.thrash_slowdown = block.number("thrash_slowdown", kNotNegative);
    memory.reading_noise = block.number("reading_noise", kNotNegative);
    std::tie(memory.oom_request_low, memory.oom_request_high) = block.interval("oom_request", kZeroToOne);
}

void read_noise(const Block& file, Noise& noise) {
    const Block block = block_of(file, "noise", {"sigma_pair", "within_run", "drift", "stall"});
    if (!block) return;
    noise.sigma_pair = block.number("sigma_pair", kNotNegative);
    noise.within_run = block.number("within_run", kZeroToOne);
    const Block drift = block_of(block, "drift", {"coefficient", "innovation"});
    noise.drift_coefficient = drift.number("coefficient", {-1, 1});
    noise.drift_innovation = drift.number("innovation", kNotNegative);
    const Block stall = block_of(block, "stall", {"probability", "scale", "index"});
    noise.stall_probability = stall.number("probability", kZeroToOne);
    noise.stall_scale = stall.number("scale", kNotNegative);
    noise.stall_index = stall.number("index", kPositive);
}

void read_timing(const Block& file, Timing& timing) {
    const Block block = block_of(file, "timing", {"startup_s", "warmup_excess", "warmup_half_life", "hang_timeout"});
    timing.startup_s = block.number("startup_s", kNotNegative);
    timing.warmup_excess = block.number("warmup_excess", kNotNegative);
    timing.warmup_half_life = block.number("warmup_half_life", kPositive);
    timing.hang_timeout = block.number("hang_timeout", kPositive);
}

void read_costs(const Block& file, Costs& costs) {
    const Block block = block_of(file, "costs", {"startup_share", "oom", "crash", "hang", "patch_failed", "reviewed"});
    costs.startup_share = block.number("startup_share", kZeroToOne);
    costs.oom = block.number("oom", kNotNegative);
    costs.crash = block.number("crash", kNotNegative);
    costs.hang = block.number("hang", kNotNegative);
    costs.patch_failed = block.number("patch_failed", kNotNegative);
    costs.reviewed = block.number("reviewed", kNotNegative);
}

void read_prior_override(Problems& problems, const Field& item, const Workload& workload, PriorRules& prior) {
    const Block block(problems, item, {"setting", "log_gain"});
    const Field field = block.required("setting");
    const Condition setting = read_condition(problems, field, workload);
    const double log_gain = block.number("log_gain", kAnyNumber);
    if (!field || field.node->kind != YamlNode::Kind::map) return;
    if (field.node->entries.size() != 1) {
        problems.add(*field.node, "{} must name one setting, found {}", field.path, field.node->entries.size());
    } else if (!setting.empty()) {
        const Setting at = setting.front();
        if (workload.knobs[static_cast<std::size_t>(at.knob)].reference == at.value) {
            problems.add(*field.node, "{} is the reference, of which nothing is believed", field.path);
        }
        prior.overrides.push_back({at, log_gain});
    }
}

void read_prior(const Block& file, Workload& workload) {
    PriorRules& prior = workload.prior;
    const Block block =
        block_of(file, "prior", {"spearman", "marginal", "overrides", "familiarity", "max_attempts", "flat"});
    if (!block) return;
    std::tie(prior.spearman_low, prior.spearman_high) = block.interval("spearman", {-1, 1});
    const Block marginal = block_of(block, "marginal", {"mean", "sd"});
    prior.mean = marginal.number("mean", kAnyNumber);
    prior.sd = marginal.number("sd", kNotNegative);
    for (const Field& item : read_list(file.problems(), block.required("overrides"))) {
        read_prior_override(file.problems(), item, workload, prior);
    }
    prior.familiarity = block.number("familiarity", kZeroToOne);
    prior.max_attempts = static_cast<int>(block.whole("max_attempts", 1, 1000));
    prior.is_flat = block.flag_or("flat", false);
}

ExpectedFact read_fact(Problems& problems, const Field& item, const Workload& workload) {
    ExpectedFact fact;
    const Block block(problems, item, {"settings", "patches", "kind", "speedup", "tolerance", "short_gib"});
    fact.settings = read_condition(problems, block.optional("settings"), workload);
    const Field patches = block.optional("patches");
    for (const std::string& id : read_texts(problems, patches)) {
        if (const auto patch = workload.find_patch(id)) {
            fact.patches.push_back(*patch);
        } else {
            problems.add(*patches.node, "{} names {}, which is no patch of this workload", patches.path, id);
        }
    }
    fact.kind = block.text_or("kind", "ok");
    if (block.optional("speedup")) fact.speedup = block.number("speedup", kPositive);
    if (block.optional("short_gib")) fact.short_gib = block.number("short_gib", kAnyNumber);
    fact.tolerance = block.number_or("tolerance", kNotNegative, 0);
    return fact;
}

// A workload of one's own may leave them out: nothing but tests looks at them.
void read_expected(const Block& file, Workload& workload) {
    const Field field = file.optional("expected");
    if (!field) return;
    ExpectedFacts& expected = workload.expected;
    const Block block(file.problems(), field, {"reference_peak_gib", "ceiling", "knob_ceiling", "facts"});
    if (block.optional("reference_peak_gib")) {
        expected.reference_peak_gib = block.number("reference_peak_gib", kPositive);
    }
    if (block.optional("ceiling")) expected.ceiling = block.number("ceiling", kPositive);
    if (block.optional("knob_ceiling")) expected.knob_ceiling = block.number("knob_ceiling", kPositive);
    for (const Field& item : read_list(file.problems(), block.optional("facts"))) {
        expected.facts.push_back(read_fact(file.problems(), item, workload));
    }
}

Workload read_all(Problems& problems, const YamlNode& root) {
    Workload workload;
    const Block file =
        Block::top(problems, root,
                   {"schema", "name", "title", "device", "job", "phases", "memory", "noise", "timing", "costs", "knobs",
                    "interactions", "conflicts", "patches", "prior", "calibration", "expected"});
    if (!file) return workload;
    const Field schema = file.required("schema");
    if (schema && !is_word(schema, kSchema)) {
        problems.add(*schema.node, "schema must be {}, found {}", kSchema, describe(*schema.node));
    }
    workload.name = file.name("name");
    workload.title = file.text("title");
    read_device(file, workload.device);
    read_job(file, workload.job);
    read_shares(file, workload.shares);
    read_memory(file, workload.memory);
    read_noise(file, workload.noise);
    read_timing(file, workload.timing);
    read_costs(file, workload.costs);
    // Conditions name knobs, and so do patches: this order.
    read_knobs(file, workload);
    read_patches(file, workload);
    read_interactions(file, workload);
    read_conflicts(file, workload);
    read_prior(file, workload);
    read_expected(file, workload);
    return workload;
}

}  // namespace

Expected<Workload> read_workload(std::string_view text, const std::string& path,
                                 const std::vector<std::string>& overrides) {
    INFRARSI_ASSIGN(YamlNode root, parse_yaml(text, path));
    for (const std::string& override_text : overrides) INFRARSI_TRY(apply_override(root, override_text));
    Problems problems(path);
    Workload workload = read_all(problems, root);
    std::vector<Error> errors = problems.take();
    if (errors.empty()) return workload;
    Error& first = errors.front();
    if (first.place() && first.place()->line == 0) {
        return wrap(std::move(first), fmt::format("applying --set {}", fmt::join(overrides, " --set ")));
    }
    return Unexpected(std::move(first));
}

Expected<Workload> load_workload(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
    INFRARSI_ASSIGN(const std::string text, read_file(path));
    return read_workload(text, path.string(), overrides);
}

}  // namespace infrarsi::sim
