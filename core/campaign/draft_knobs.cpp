#include "core/campaign/draft_knobs.h"

#include "core/campaign/draft_levers.h"

namespace infrarsi {
namespace {

Value whole(std::int64_t number) {
    return Value{number};
}

std::optional<std::int64_t> positive(const std::optional<Value>& value) {
    const auto* number = value ? std::get_if<std::int64_t>(&*value) : nullptr;
    return number != nullptr && *number > 0 ? std::optional(*number) : std::nullopt;
}

bool contains(const std::vector<Value>& values, const Value& value) {
    return std::any_of(values.begin(), values.end(), [&](const Value& item) { return same_effect(item, value); });
}

// Sorted by number where all are numbers, the reference among them.
std::vector<Value> menu(std::vector<Value> values, const Value& reference) {
    if (!contains(values, reference)) values.push_back(reference);
    const bool numbers = std::all_of(values.begin(), values.end(),
                                     [](const Value& value) { return std::holds_alternative<std::int64_t>(value); });
    if (numbers) {
        std::sort(values.begin(), values.end(),
                  [](const Value& a, const Value& b) { return *to_number(a) < *to_number(b); });
    }
    return values;
}

class KnobDrafter {
public:
    KnobDrafter(Draft& draft, const KnobSources& sources) : draft_(draft), sources_(sources) {}

    void run() {
        levers_ = find_levers(sources_, draft_.contract.launch.stack);
        batch();
        for (const Lever& lever : levers_) lever_knob(lever);
        environment();
    }

private:
    const Lever* lever(std::string_view mechanism) const {
        for (const Lever& item : levers_) {
            if (item.mechanism == mechanism && positive(item.now)) return &item;
        }
        return nullptr;
    }

    void add(const Lever& lever, std::string name, std::vector<Value> values, const std::string& why) {
        Contract& contract = draft_.contract;
        for (const Knob& knob : contract.knobs) {
            if (knob.kind == lever.kind && knob.spelling == lever.spelling) return;
        }
        for (int suffix = 2; contract.knob(name) != nullptr; ++suffix) {
            name = name.substr(0, name.find("__")) + "__" + std::to_string(suffix);
        }
        Knob knob;
        knob.name = name;
        knob.kind = lever.kind;
        knob.spelling = lever.spelling;
        knob.form = lever.form;
        knob.reference = lever.now.value_or(Value{});
        knob.values = menu(std::move(values), knob.reference);
        if (knob.values.size() < 2 && lever.mechanism != "batch.global_batch") return;
        const Mechanism* mechanism = sources_.mechanisms.find(lever.mechanism);
        if (mechanism != nullptr) knob.mechanism = mechanism->short_name();
        contract.knobs.push_back(std::move(knob));
        draft_.comments.knobs[name] = lever.place.empty() || why.empty() ? lever.place + why : lever.place + "; " + why;
    }

    // micro-batch × accumulation, kept constant; or a fixed global batch that the micro-batch divides.
    void batch() {
        const Lever *micro = lever("batch.micro_batch"), *accum = lever("batch.grad_accum");
        const Lever* global = lever("batch.global_batch");
        if (micro != nullptr && accum != nullptr) {
            const std::int64_t m = *positive(micro->now), a = *positive(accum->now), product = m * a;
            std::vector<Value> micros, accums;
            for (std::int64_t value = 1; value <= std::min<std::int64_t>(product, 1 << 20); ++value) {
                if (product % value != 0 || value > 16 * m || value * 16 < m) continue;
                const bool simple = (value & (value - 1)) == 0 || value % m == 0 || m % value == 0;
                if (!simple) continue;
                micros.push_back(whole(value));
                accums.push_back(whole(product / value));
            }
            const std::string why = fmt::format("micro-batch × accumulation stays {}", product);
            add(*micro, "micro_batch", std::move(micros), why);
            add(*accum, "grad_accum", std::move(accums), why);
            draft_.contract.constraints.push_back(fmt::format("micro_batch * grad_accum == {}", product));
        } else if (micro != nullptr && global != nullptr) {
            const std::int64_t m = *positive(micro->now), total = *positive(global->now);
            std::vector<Value> micros;
            for (std::int64_t value = 1; value <= std::min<std::int64_t>(total, 8 * m); value *= 2) {
                if (total % value == 0) micros.push_back(whole(value));
            }
            add(*micro, "micro_batch", std::move(micros),
                fmt::format("accumulation follows from the global batch of {}", total));
            add(*global, "global_batch", {whole(total)}, "fixed: it is the contract's batch");
            draft_.contract.constraints.push_back("global_batch % micro_batch == 0");
        } else if (micro != nullptr || accum != nullptr) {
            draft_.notes.push_back(
                fmt::format("{} is no knob: alone it would change the tokens per update, and no {} stands beside it",
                            (micro != nullptr ? micro : accum)->spelling,
                            micro != nullptr ? "gradient accumulation" : "micro-batch size"));
        }
    }

    void lever_knob(const Lever& lever) {
        const std::string& id = lever.mechanism;
        const Mechanism* mechanism = sources_.mechanisms.find(id);
        if (mechanism == nullptr || id.starts_with("batch.")) return;
        const bool attention = id == "attn.backend";
        if (mechanism->risk != ContractRisk::none && !attention) return;
        if (!lever.now) {
            draft_.notes.push_back(
                fmt::format("{} is no knob: what the job uses today could not be read; add it to knobs with "
                            "its values if it may change",
                            lever.spelling));
            return;
        }
        if (auto values = values_of(lever, *mechanism); !values.empty()) add(lever, lever.label, std::move(values), "");
    }

    std::vector<Value> values_of(const Lever& lever, const Mechanism& mechanism) const {
        const std::string& id = mechanism.id;
        const auto* number = std::get_if<std::int64_t>(&*lever.now);
        if (id.starts_with("log.") || id.starts_with("checkpoint.") || id.starts_with("numerics.") ||
            id == "comm.timeout") {
            return {};
        }
        const bool needs_gpu = id.starts_with("comm.") || id.starts_with("nccl.") || id.starts_with("cudagraph.") ||
                               id.starts_with("fsdp.") || id == "dataloader.pin_memory" || id.starts_with("env.");
        if (needs_gpu && sources_.hardware.gpus == 0) return {};
        if (id == "dataloader.workers") {
            if (number == nullptr) return {};
            return up_to({0, 1, 2, 4, 8}, std::max(1, sources_.hardware.cores));
        }
        if (id == "host.omp_threads") {
            if (number == nullptr) return {};
            return up_to({1, 2, 4, 8, 16, 32, 64}, threads());
        }
        if (id == "dataloader.persistent_workers" || id == "dataloader.prefetch") return {};
        if (lever.is_bool) return {Value{false}, Value{true}};
        if (!lever.choices.empty()) return lever.choices;
        if (number != nullptr && (*number == 0 || *number == 1) && mechanism.domain_type == "bool")
            return {whole(0), whole(1)};
        if (contains(mechanism.domain, *lever.now)) return mechanism.domain;
        return {};
    }

    int threads() const { return std::max(1, sources_.hardware.cores / sources_.plan.processes_per_node.value_or(1)); }

    static std::vector<Value> up_to(std::initializer_list<int> values, int most) {
        std::vector<Value> result;
        for (const int value : values) {
            if (value <= most) result.push_back(whole(value));
        }
        if (!contains(result, whole(most)) && most <= 64) result.push_back(whole(most));
        return result;
    }

    Lever env_lever(const std::string& name, const std::string& mechanism) const {
        Lever lever;
        lever.kind = KnobKind::env;
        lever.spelling = name;
        lever.mechanism = mechanism;
        lever.now = Value{};
        lever.place = "not set today";
        if (const auto found = sources_.plan.env.find(name); found != sources_.plan.env.end()) {
            lever.now = value_from_text(found->second.value.text());
            lever.place = fmt::format("set to {} today", found->second.value.text());
            if (!found->second.value.known()) lever.now.reset();
        }
        return lever;
    }

    void environment() {
        const Lever omp = env_lever("OMP_NUM_THREADS", "host.omp_threads");
        if (omp.now && (sources_.hardware.gpus == 0 || !is_null(*omp.now))) {
            add(omp, "omp_threads", up_to({1, 2, 4, 8, 16, 32, 64}, threads()),
                fmt::format("{} core{}", sources_.hardware.cores, sources_.hardware.cores == 1 ? "" : "s"));
        }
        if (sources_.hardware.gpus == 0) {
            // One variable for two settings that only help together: nothing is mapped by itself, nothing given back.
            const Lever malloc = env_lever("GLIBC_TUNABLES", "");
            if (malloc.now) {
                add(malloc, "malloc",
                    {Value{}, Value{std::string("glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=4294967296")}},
                    "keeps freed memory in the process instead of faulting it in again");
            }
        } else {
            const Lever cuda = env_lever("PYTORCH_CUDA_ALLOC_CONF", "memory.cuda_alloc_conf");
            if (cuda.now) {
                add(cuda, "cuda_alloc", {Value{}, Value{std::string("expandable_segments:True")}},
                    "less fragmentation of device memory");
            }
        }
        for (const auto& [name, value] : sources_.plan.env) {
            const auto spelled = sources_.mechanisms.spelled("", "env_var", name);
            if (spelled.size() != 1 || spelled.front()->risk != ContractRisk::none) continue;
            Lever lever = env_lever(name, spelled.front()->id);
            if (!lever.now) continue;
            lever.label = name;
            std::transform(lever.label.begin(), lever.label.end(), lever.label.begin(),
                           [](unsigned char c) { return std::tolower(c); });
            if (auto values = values_of(lever, *spelled.front()); !values.empty())
                add(lever, lever.label, std::move(values), "");
        }
    }

    Draft& draft_;
    const KnobSources& sources_;
    std::vector<Lever> levers_;
};

bool has_flag(const LaunchPlan& plan, std::initializer_list<const char*> flags) {
    return std::any_of(flags.begin(), flags.end(), [&](const char* flag) { return find_flag(plan, flag).has_value(); });
}

}  // namespace

Stack detect_stack(const LaunchPlan& plan, const PythonClosure& closure) {
    if (closure.imports("megatron") || has_flag(plan, {"--tensor-model-parallel-size", "--train-iters"}) ||
        plan.entry_as_written.find("pretrain_gpt") != std::string::npos) {
        return Stack::megatron;
    }
    if (closure.imports("torchtitan") || plan.module.starts_with("torchtitan") ||
        has_flag(plan, {"--job.config_file"})) {
        return Stack::torchtitan;
    }
    const bool trainer = has_flag(plan, {"--per_device_train_batch_size"});
    if (closure.imports("trl") || trainer) return Stack::hf;
    if (plan.launcher == Launcher::deepspeed || closure.imports("deepspeed")) return Stack::deepspeed;
    if (closure.imports("accelerate") || plan.launcher == Launcher::accelerate) return Stack::hf;
    return Stack::ddp;
}

void draft_knobs(Draft& draft, const KnobSources& sources) {
    KnobDrafter(draft, sources).run();
}

void draft_window(Draft& draft, const KnobSources& sources) {
    constexpr int kUpdates = 30, kWarmup = 10;
    Launch& launch = draft.contract.launch;
    launch.updates = kUpdates;
    launch.warmup = kWarmup;
    const auto found = find_update_count(sources);
    if (!found) {
        draft.notes.push_back(
            fmt::format("the number of updates was not found on the launch line; a trial is the first {}", kUpdates));
        return;
    }
    if (found->count < kUpdates) {
        launch.updates = static_cast<int>(found->count);
        launch.warmup = static_cast<int>(found->count / 3);
        draft.comments.entries["launch.updates"] = fmt::format(
            "{} is {}: the whole job, with a third of it left out as warm-up", found->spelling, found->count);
        if (found->count < 9) {
            draft.warnings.push_back(
                fmt::format("{} is {}: too few updates for a reliable step time; raise it for the trials",
                            found->spelling, found->count));
        }
    } else {
        draft.comments.entries["launch.updates"] =
            fmt::format("of {} ({}); a trial is stopped after these, the schedules stay as they are", found->count,
                        found->spelling);
    }
}

}  // namespace infrarsi
