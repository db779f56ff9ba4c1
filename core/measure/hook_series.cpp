#include "core/measure/hook_series.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/digest.h"
#include "core/measure/jsonl.h"

namespace infrarsi {
namespace {

using nlohmann::json;

// A number, where non-finite ones are the texts "nan", "inf", "-inf".
std::optional<double> number(const json& row, const char* key) {
    const auto it = row.find(key);
    if (it == row.end() || it->is_null()) {
        return std::nullopt;
    }
    if (it->is_string()) {
        const auto text = it->get<std::string>();
        if (text == "inf") {
            return std::numeric_limits<double>::infinity();
        }
        if (text == "-inf") {
            return -std::numeric_limits<double>::infinity();
        }
        if (text == "nan") {
            return std::nan("");
        }
    }
    return it->get<double>();
}

std::optional<std::int64_t> integer(const json& row, const char* key) {
    const auto value = number(row, key);
    if (!value || !std::isfinite(*value) || std::abs(*value) > 9e18) {
        return std::nullopt;
    }
    return static_cast<std::int64_t>(*value);
}

std::string text(const json& row, const char* key) {
    const auto it = row.find(key);
    return it == row.end() || it->is_null() ? std::string{} : it->get<std::string>();
}

Value value_of(const json& item) {
    if (auto value = value_from_json(item)) {
        return *value;
    }
    return item.dump();  // a list: as the job would print it
}

std::map<std::string, Value> values_of(const json& row, const char* key) {
    std::map<std::string, Value> values;
    if (const auto it = row.find(key); it != row.end() && it->is_object()) {
        for (const auto& [name, item] : it->items()) {
            values.emplace(name, value_of(item));
        }
    }
    return values;
}

void add_integer(std::optional<std::int64_t>& sum, std::optional<std::int64_t> more, bool first) {
    // A rank that does not report makes the sum unknown, not smaller.
    if (!more || (!first && !sum)) {
        sum.reset();
    } else {
        sum = first ? *more : *sum + *more;
    }
}

// One update while its ranks come in.
struct OpenUpdate {
    std::set<int> ranks;
    UpdateRecord record;
    double loss_sum = 0;
    bool every_loss = true, every_digest = true;
    std::uint64_t data_sum = 0;
};

void merge(OpenUpdate& open, int rank, const json& row) {
    const bool first = open.ranks.empty();
    if (!open.ranks.insert(rank).second) {
        return;
    }  // the same update twice: only the first report counts
    auto& record = open.record;
    record.n = row.at("n").get<int>();
    record.t_s = std::max(record.t_s, row.at("t").get<double>() / 1e9);
    add_integer(record.tokens, integer(row, "tokens"), first);
    add_integer(record.samples, integer(row, "samples"), first);
    const auto seq_len = integer(row, "seq_len");
    if (seq_len) {
        record.seq_len = std::max(record.seq_len.value_or(0), *seq_len);
    }
    const auto data = text(row, "data");
    char* end = nullptr;
    const auto digest = std::strtoull(data.c_str(), &end, 16);
    open.every_digest = open.every_digest && !data.empty() && *end == '\0';
    open.data_sum += digest;
    const auto loss = number(row, "loss");
    open.every_loss = open.every_loss && loss.has_value();
    open.loss_sum += loss.value_or(0);
    // The norm after reduction is the same on each rank; of those that differ the largest is shown.
    if (const auto norm = number(row, "grad_norm")) {
        record.grad_norm = record.grad_norm && !(*norm > *record.grad_norm) ? *record.grad_norm : *norm;
    }
    if (const auto lr = number(row, "lr"); lr && !record.lr) {
        record.lr = lr;
    }
    // The slowest rank's counter: a rank that stepped less often has not finished the update.
    if (const auto steps = integer(row, "opt_steps")) {
        record.opt_steps = std::min(record.opt_steps.value_or(*steps), *steps);
    }
    const auto phases = row.find("phases");
    if (phases != row.end() && phases->is_object()) {
        const auto part = [&](const char* key) { return number(*phases, key).value_or(0); };
        const PhaseTimes times{part("forward"), part("backward"), part("optimizer"), part("data"), part("other")};
        const auto total = [](const PhaseTimes& p) { return p.forward + p.backward + p.optimizer + p.data + p.other; };
        if (!record.phases || total(times) > total(*record.phases)) {
            record.phases = times;
        }
    }
}

void add_projections(const json& row, const char* key, int rank, std::map<std::string, double>& into) {
    const auto it = row.find(key);
    if (it == row.end() || !it->is_object()) {
        return;
    }
    for (const auto& [name, item] : it->items()) {
        const auto value = number(*it, name.c_str());
        if (!value) {
            continue;
        }
        const auto [at, is_new] = into.try_emplace(name, *value);
        // Ranks that hold the same tensor agree to the last bit; one that differs (a shard, a rank that drifted) keeps
        // its own entry.
        const bool equal = at->second == *value || (std::isnan(at->second) && std::isnan(*value));
        if (!is_new && !equal) {
            into.emplace(fmt::format("rank{}:{}", rank, name), *value);
        }
    }
}

class HookReader {
public:
    void see(const json& row) {
        const auto kind = text(row, "k");
        const int rank = row.value("rank", 0);
        if (kind == "hello") {
            ranks_.insert(rank);
            result_.world = std::max(result_.world, row.value("world", 1));
        } else if (kind == "model") {
            models_[rank] = row;
        } else if (kind == "knobs") {
            if (!result_.knobs || rank < knobs_rank_) {
                see_knobs(row, rank);
            }
        } else if (kind == "update") {
            ranks_.insert(rank);
            merge(updates_[row.at("n").get<int>()], rank, row);
        } else if (kind == "state") {
            see_state(row, rank);
        } else if (kind == "audit") {
            see_audit(row);
        }
    }

    HookSeries finish() {
        result_.world = std::max(result_.world, static_cast<int>(ranks_.size()));
        for (auto& [n, open] : updates_) {
            if (static_cast<int>(open.ranks.size()) < result_.world) {
                continue;
            }
            if (open.every_loss) {
                open.record.loss = open.loss_sum / static_cast<double>(open.ranks.size());
            }
            if (open.every_digest) {
                open.record.data = fmt::format("{:016x}", open.data_sum);
            }
            result_.series.push_back(std::move(open.record));
        }
        for (auto& [n, probe] : probes_) {
            result_.probes.push_back(std::move(probe));
        }
        result_.disturbed.assign(disturbed_.begin(), disturbed_.end());
        finish_model();
        return std::move(result_);
    }

private:
    void see_knobs(const json& row, int rank) {
        knobs_rank_ = rank;
        result_.knobs =
            KnobMessage{values_of(row, "args"),  values_of(row, "globals"), values_of(row, "env"),
                        integer(row, "threads"), integer(row, "workers"),   integer(row, "compiled_frames")};
    }

    void see_state(const json& row, int rank) {
        const int n = row.at("n").get<int>();
        auto& probe = probes_[n];
        probe.n = n;
        add_projections(row, "params", rank, probe.params);
        add_projections(row, "buffers", rank, probe.buffers);
        add_projections(row, "optimizer", rank, probe.optimizer);
        // The question is answered after update n was reported, so its cost falls into the next interval.
        disturbed_.insert(n + 1);
    }

    void see_audit(const json& row) {
        const int n = row.at("n").get<int>();
        if (!result_.audit) {
            result_.audit = DtypeAudit{n, {}, {}};
        }
        auto& audit = *result_.audit;
        for (const auto& [operation, dtypes] : row.at("matmul").items()) {
            for (const auto& [dtype, calls] : dtypes.items()) {
                audit.matmul[operation][dtype] += calls.get<int>();
            }
        }
        if (const auto autocast = text(row, "autocast"); !autocast.empty()) {
            audit.autocast = autocast;
        }
        disturbed_.insert(n);
    }

    // Ranks that hold the same model agree; sharded or pipelined ones are summed, their digests hashed in rank order.
    void finish_model() {
        if (models_.empty()) {
            return;
        }
        std::set<std::string> digests;
        std::string all;
        for (const auto& [rank, model] : models_) {
            digests.insert(text(model, "digest"));
            all += text(model, "digest") + "\n";
        }
        const bool same = digests.size() == 1;
        result_.model_digest = same ? *digests.begin() : sha256_hex(all);
        for (const auto& [rank, model] : models_) {
            const auto params = integer(model, "params");
            if (params) {
                result_.trainable_params = result_.trainable_params.value_or(0) + *params;
            }
            if (const auto dtypes = model.find("dtypes"); dtypes != model.end() && dtypes->is_object()) {
                for (const auto& [dtype, count] : dtypes->items()) {
                    result_.param_dtypes[dtype] += count.get<std::int64_t>();
                }
            }
            if (same) {
                break;
            }
        }
    }

    HookSeries result_;
    std::set<int> ranks_, disturbed_;
    std::map<int, OpenUpdate> updates_;
    std::map<int, StateProbe> probes_;
    std::map<int, json> models_;
    int knobs_rank_ = 0;
};

}  // namespace

Expected<HookSeries> read_hook_series(const std::filesystem::path& path) {
    HookReader reader;
    INFRARSI_TRY(read_jsonl(path, [&](const json& row) { reader.see(row); }));
    return reader.finish();
}

}  // namespace infrarsi
