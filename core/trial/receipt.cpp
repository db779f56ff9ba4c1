#include "core/trial/receipt.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/json.h"

namespace infrarsi {

namespace {

using nlohmann::json;

// One list of fields a type, read by the writer and by the reader below, so that the two cannot drift apart.

template <class T, class U>
concept Is = std::same_as<std::remove_const_t<T>, U>;

template <class Archive, Is<PhaseTimes> T>
void fields(Archive& archive, T& x) {
    archive("forward", x.forward);
    archive("backward", x.backward);
    archive("optimizer", x.optimizer);
    archive("data", x.data);
    archive("other", x.other);
}

template <class Archive, Is<UpdateRecord> T>
void fields(Archive& archive, T& x) {
    archive("n", x.n);
    archive("t_s", x.t_s);
    archive("tokens", x.tokens);
    archive("samples", x.samples);
    archive("seq_len", x.seq_len);
    archive("data", x.data);
    archive("loss", x.loss);
    archive("grad_norm", x.grad_norm);
    archive("lr", x.lr);
    archive("opt_steps", x.opt_steps);
    archive("reported_s", x.reported_s);
    archive("phases", x.phases);
}

template <class Archive, Is<StateProbe> T>
void fields(Archive& archive, T& x) {
    archive("n", x.n);
    archive("params", x.params);
    archive("buffers", x.buffers);
    archive("optimizer", x.optimizer);
}

template <class Archive, Is<DtypeAudit> T>
void fields(Archive& archive, T& x) {
    archive("n", x.n);
    archive("matmul", x.matmul);
    archive("autocast", x.autocast);
}

template <class Archive, Is<MemoryUse> T>
void fields(Archive& archive, T& x) {
    archive("peak_gib", x.peak_gib);
    archive("cap_gib", x.cap_gib);
    archive("source", x.source);
}

template <class Archive, Is<OutOfMemory> T>
void fields(Archive& archive, T& x) {
    archive("in_use_gib", x.in_use_gib);
    archive("tried_gib", x.tried_gib);
    archive("need_gib", x.need_gib);
    archive("line", x.line);
}

template <class Archive, Is<FailureLine> T>
void fields(Archive& archive, T& x) {
    archive("class", x.failure_class);
    archive("text", x.text);
    archive("stream", x.stream);
    archive("line", x.line);
    archive("t_s", x.t_s);
}

template <class Archive, Is<Execution> T>
void fields(Archive& archive, T& x) {
    archive("exit_code", x.exit_code);
    archive("signal", x.signal);
    archive("timed_out", x.timed_out);
    archive("cancelled", x.cancelled);
    archive("stopped", x.stopped);
    archive("wall_start_s", x.wall_start_s);
    archive("wall_end_s", x.wall_end_s);
    archive("duration_s", x.duration_s);
    archive("error", x.error);
    archive("cpu_stall_s", x.cpu_stall_s);
    archive("world", x.world);
}

template <class Archive, Is<IsolationHeld> T>
void fields(Archive& archive, T& x) {
    archive("sandbox", x.sandbox);
    archive("network", x.network);
    archive("frozen_readonly", x.frozen_readonly);
    archive("why", x.why);
}

template <class Archive, Is<CheckResult> T>
void fields(Archive& archive, T& x) {
    archive("command", x.command);
    archive("exit_code", x.exit_code);
    archive("value", x.value);
    archive("note", x.note);
    archive("duration_s", x.duration_s);
}

template <class Archive, Is<Receipt> T>
void fields(Archive& archive, T& x) {
    archive("schema", x.schema);
    archive("harness", x.harness);
    archive("campaign", x.campaign);
    archive("trial", x.trial);
    archive("role", x.role);
    archive("candidate", x.candidate);
    archive("contract_digest", x.contract_digest);
    archive("tree_digest", x.tree_digest);
    archive("updates", x.updates);
    archive("warmup", x.warmup);
    archive("execution", x.execution);
    archive("isolation", x.isolation);
    archive("series", x.series);
    archive("model_digest", x.model_digest);
    archive("trainable_params", x.trainable_params);
    archive("param_dtypes", x.param_dtypes);
    archive("probes", x.probes);
    archive("audit", x.audit);
    archive("memory", x.memory);
    archive("oom", x.oom);
    archive("failures", x.failures);
    archive("frozen_before", x.frozen_before);
    archive("frozen_after", x.frozen_after);
    archive("frozen_touched", x.frozen_touched);
    archive("effective", x.effective);
    archive("ineffective", x.ineffective);
    archive("eval", x.eval);
    archive("resume", x.resume);
    archive("tests", x.tests);
    archive("environment", x.environment);
    archive("disturbed", x.disturbed);
}

class Writer {
public:
    template <class T>
    void operator()(const char* key, const T& value) {
        json_[key] = put(value);
    }

    template <class T>
    static json write(const T& value) {
        Writer writer;
        fields(writer, value);
        return std::move(writer.json_);
    }

private:
    static json put(const std::string& value) { return value; }
    static json put(bool value) { return value; }
    static json put(int value) { return value; }
    static json put(std::int64_t value) { return value; }
    static json put(const Candidate& value) { return to_json(value); }
    static json put(const Settings& value) { return to_json(value); }
    // JSON has no NaN and no infinities; a loss that became one is evidence and must survive.
    static json put(double value) {
        if (std::isnan(value)) return "nan";
        if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
        return value;
    }
    template <class T>
    static json put(const std::optional<T>& value) {
        return value ? put(*value) : json(nullptr);
    }
    template <class T>
    static json put(const std::vector<T>& values) {
        json list = json::array();
        for (const T& value : values) list.push_back(put(value));
        return list;
    }
    template <class T>
    static json put(const std::map<std::string, T>& values) {
        json object = json::object();
        for (const auto& [key, value] : values) object[key] = put(value);
        return object;
    }
    template <class T>
    static json put(const T& value) {
        return write(value);
    }

    json json_ = json::object();
};

// Keeps the first problem and reads nothing after it.
class Reader {
public:
    template <class T>
    void operator()(const char* key, T& value) {
        if (error_) return;
        const auto found = json_->find(key);
        if (found == json_->end()) {
            error_ = Error(ErrorKind::invalid_input, fmt::format("the key '{}{}' is missing", where_, key));
            return;
        }
        get(*found, value, where_ + key);
    }

    template <class T>
    static Expected<void> read(const json& source, T& value, const std::string& where) {
        Reader reader;
        reader.get_object(source, value, where);
        if (reader.error_) return Unexpected(std::move(*reader.error_));
        return {};
    }

private:
    void wrong(const std::string& where, const char* wanted, const json& source) {
        if (!error_) {
            error_ = Error(ErrorKind::invalid_input,
                           fmt::format("'{}' must be {}, not {}", where, wanted, source.type_name()));
        }
    }
    void get(const json& source, std::string& value, const std::string& where) {
        if (!source.is_string()) return wrong(where, "text", source);
        value = source.get<std::string>();
    }
    void get(const json& source, bool& value, const std::string& where) {
        if (!source.is_boolean()) return wrong(where, "true or false", source);
        value = source.get<bool>();
    }
    void get(const json& source, std::int64_t& value, const std::string& where) {
        if (!source.is_number_integer()) return wrong(where, "a whole number", source);
        value = source.get<std::int64_t>();
    }
    void get(const json& source, int& value, const std::string& where) {
        std::int64_t whole = 0;
        get(source, whole, where);
        if (whole < std::numeric_limits<int>::min() || whole > std::numeric_limits<int>::max()) {
            return wrong(where, "a number of 32 bits", source);
        }
        value = static_cast<int>(whole);
    }
    void get(const json& source, double& value, const std::string& where) {
        if (source.is_number()) {
            value = source.get<double>();
        } else if (source == "nan") {
            value = std::numeric_limits<double>::quiet_NaN();
        } else if (source == "inf" || source == "-inf") {
            value =
                source == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
        } else {
            wrong(where, "a number", source);
        }
    }
    void get(const json& source, Candidate& value, const std::string& where) {
        take(candidate_from_json(source), value, where);
    }
    void get(const json& source, Settings& value, const std::string& where) {
        take(settings_from_json(source), value, where);
    }
    template <class T>
    void get(const json& source, std::optional<T>& value, const std::string& where) {
        value.reset();
        if (!source.is_null()) get(source, value.emplace(), where);
    }
    template <class T>
    void get(const json& source, std::vector<T>& values, const std::string& where) {
        if (!source.is_array()) return wrong(where, "a list", source);
        values.clear();
        for (const json& item : source) {
            get(item, values.emplace_back(), fmt::format("{}[{}]", where, values.size() - 1));
        }
    }
    template <class T>
    void get(const json& source, std::map<std::string, T>& values, const std::string& where) {
        if (!source.is_object()) return wrong(where, "an object", source);
        values.clear();
        for (const auto& [key, item] : source.items()) get(item, values[key], where + "." + key);
    }
    template <class T>
    void get(const json& source, T& value, const std::string& where) {
        get_object(source, value, where + ".");
    }

    template <class T>
    void get_object(const json& source, T& value, const std::string& where) {
        if (error_) return;
        if (!source.is_object()) return wrong(where.empty() ? "receipt" : where, "an object", source);
        Reader inner;
        inner.json_ = &source;
        inner.where_ = where;
        fields(inner, value);
        error_ = std::move(inner.error_);
    }
    template <class T>
    void take(Expected<T> read, T& value, const std::string& where) {
        if (error_) return;
        if (read) {
            value = std::move(*read);
        } else {
            error_ = std::move(read.error()).while_doing("reading '" + where + "'");
        }
    }

    const json* json_ = nullptr;
    std::string where_;
    std::optional<Error> error_;
};

}  // namespace

nlohmann::json to_json(const Receipt& receipt) {
    return Writer::write(receipt);
}

Expected<Receipt> receipt_from_json(const nlohmann::json& json) {
    if (!json.is_object()) {
        return fail(ErrorKind::invalid_input, "a receipt must be an object, not {}", json.type_name());
    }
    const auto schema = json.find("schema");
    if (schema == json.end() || !schema->is_string()) {
        return fail(ErrorKind::invalid_input, "the key 'schema' is missing from the receipt");
    }
    if (*schema != kReceiptSchema) {
        return fail(ErrorKind::unsupported, "the receipt has the schema '{}', this infrarsi {} reads '{}'",
                    schema->get<std::string>(), INFRARSI_VERSION, kReceiptSchema);
    }
    Receipt receipt;
    INFRARSI_TRY(Reader::read(json, receipt, ""));
    return receipt;
}

std::string sign_receipt(const Receipt& receipt, std::string_view key) {
    const nlohmann::json body = to_json(receipt);
    const std::string mac = hmac_sha256_hex(key, canonical_json(body));
    return canonical_json({{"receipt", body}, {"mac", mac}}) + "\n";
}

Expected<Receipt> open_receipt(std::string_view text, std::string_view key, const std::string& name) {
    const auto file = parse_json(text, name);
    if (!file) {
        const Place place = file.error().place().value_or(Place{name});
        return fail_at(ErrorKind::corrupt, place, "the receipt does not verify: {}", file.error().message());
    }
    const auto receipt = file->is_object() ? file->find("receipt") : file->end();
    const auto mac = file->is_object() ? file->find("mac") : file->end();
    if (receipt == file->end()) return fail_at(ErrorKind::corrupt, {name}, "this file holds no receipt");
    if (mac == file->end() || !mac->is_string()) {
        return fail_at(ErrorKind::corrupt, {name}, "the receipt is not signed; only signed receipts count");
    }
    if (!digests_equal(hmac_sha256_hex(key, canonical_json(*receipt)), mac->get_ref<const std::string&>())) {
        return fail_at(ErrorKind::corrupt, {name},
                       "the receipt does not verify with this user's key: it was changed after it was signed, or "
                       "another user made it; run the trial again");
    }
    auto opened = receipt_from_json(*receipt);
    if (!opened) return Unexpected(std::move(opened).error().at(Place{name}));
    return opened;
}

}  // namespace infrarsi
