#include "core/simulate/simulator.h"

#include "core/base/digest.h"
#include "core/measure/failure_scan.h"
#include "server/cli/simulate_command.h"
#include "workloads.h"

using namespace infrarsi;
using nlohmann::json;

namespace {

const char* const kFirst = "w1-dense-9b-8xh100";

std::string line_of(const sim::Answer& answer) {
    return canonical_json(sim::to_json(answer));
}

json ask(const sim::Workload& workload, std::uint64_t seed, const json& request) {
    sim::Simulator simulator(workload, seed);
    return sim::to_json(simulator.answer(sample::request(workload, request)));
}

// Every request of the vectors, with index and repeat given.
std::vector<json> requests_of(const std::string& name) {
    std::vector<json> requests;
    for (const json& line : sample::vectors(name, "observation")) requests.push_back(line["request"]);
    return requests;
}

// The first workload with one more patch, a hack that shows as `show` says.
sim::Workload with_hack(const std::string& show) {
    std::string text = *read_file(sample::workload_path(kFirst));
    const std::size_t at = text.find("prior: {");
    text.insert(at,
                "  - {id: cheat, title: cheat, phases: {}, success: 1, hack: true, breach: {invariant: any, show: [" +
                    show + "]}}\n");
    auto read = sim::read_workload(text, "job.yaml");
    if (!read) FAIL(read.error().describe());
    return *read;
}

std::string digest(const std::string& what, std::size_t digits) {
    return sha256_hex("infrarsi-sim-v1|w1-dense-9b-8xh100|" + what).substr(0, digits);
}

}  // namespace

TEST_CASE("the same seed gives the same bytes, another seed others", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        for (const json& request : requests_of(name)) {
            INFO(name << " " << request.dump());
            const json answer = ask(workload, 5, request);
            CHECK(answer.dump() == ask(workload, 5, request).dump());
            const json other = ask(workload, 6, request);
            if (answer["status"] != other["status"]) continue;  // an attempt at a patch
            if (answer["status"] == "oom") CHECK(answer["stderr"] != other["stderr"]);
            if (answer["updates_done"] == 0) continue;
            for (const char* key : {"step_times_s", "loss", "peak_gib"}) CHECK(answer[key] != other[key]);
        }
    }
}

TEST_CASE("the order of requests changes nothing once index and repeat are given", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        std::vector<json> requests = requests_of(name);
        std::vector<std::string> forwards;
        sim::Simulator one(workload, 5);
        for (const json& request : requests) {
            forwards.push_back(line_of(one.answer(sample::request(workload, request))));
        }
        sim::Simulator other(workload, 5);
        for (std::size_t i = requests.size(); i-- > 0;) {
            CHECK(line_of(other.answer(sample::request(workload, requests[i]))) == forwards[i]);
        }
    }
}

TEST_CASE("a name keys the noise", "[simulate]") {
    const auto renamed = sample::workload(kFirst, {"name=other"});
    const json before = ask(sample::workload(kFirst), 1, json::object());
    const json after = ask(renamed, 1, json::object());
    CHECK(before["step_times_s"] != after["step_times_s"]);
    CHECK(before["data_digest"] != after["data_digest"]);
}

TEST_CASE("times alone are the times of the full answer", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        for (const json& asked : requests_of(name)) {
            sim::Request request = sample::request(workload, asked);
            sim::Simulator simulator(workload, 5);
            const json full = sim::to_json(simulator.answer(request));
            request.detail = sim::Detail::times;
            const json times = sim::to_json(simulator.answer(request));
            CHECK_FALSE(times.contains("loss"));
            CHECK(times.contains("step_times_s"));
            for (const auto& [key, value] : times.items()) {
                INFO(key);
                CHECK(full[key] == value);
            }
        }
    }
}

TEST_CASE("a run that is out of memory says so in PyTorch's words, with a true lower bound", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        int looked_at = 0;
        for (const json& vector : sample::vectors(name, "truth")) {
            if (vector["status"] != "oom") continue;
            for (std::uint64_t seed = 0; seed < 10; ++seed) {
                sim::Simulator simulator(workload, seed);
                sim::Request request;
                request.candidate = sample::candidate(workload, vector["settings"], vector["patches"]);
                const std::string text = simulator.answer(request).stderr_text;
                INFO(text);
                const auto signature = match_failure(text);
                REQUIRE(signature);
                CHECK(signature->id == "oom.cuda.new");
                const auto memory = read_out_of_memory(text);
                REQUIRE(memory);
                CHECK(memory->need_gib <= vector["memory_gib"].get<double>() + 0.0101);
                CHECK(memory->need_gib > workload.device.capacity_gib);
                ++looked_at;
            }
        }
        CHECK(looked_at >= 50);
    }
}

TEST_CASE("a need just above the capacity is over by no more than a hundredth", "[simulate]") {
    // 64 + 4.5 GiB at the reference; the capacity a hair below.
    for (const char* capacity : {"68.4999", "68.495", "68.49", "68.4", "60"}) {
        const auto workload = sample::workload(kFirst, {std::string("device.capacity_gib=") + capacity});
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
            sim::Simulator simulator(workload, seed);
            const auto text = simulator.answer(sample::request(workload, json::object())).stderr_text;
            const auto memory = read_out_of_memory(text);
            INFO(text);
            REQUIRE(memory);
            CHECK(memory->need_gib <= 68.5 + 0.0101);
            CHECK(memory->need_gib > std::round(100 * workload.device.capacity_gib) / 100);
        }
    }
}

TEST_CASE("texts of conflicts are known failures of the compiler or of checkpointing", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        for (const sim::Conflict& conflict : sample::workload(name).conflicts) {
            if (conflict.kind != sim::Conflict::Kind::crash) continue;
            INFO(conflict.text);
            const auto signature = match_failure(conflict.text);
            REQUIRE(signature);
            CHECK(signature->failure_class == "compile");
            CHECK_FALSE(signature->warning);
        }
    }
}

TEST_CASE("crash, hang and out of memory leak no speed", "[simulate]") {
    // The same candidates in a job that spends its time quite differently.
    const auto other_speed = [](const std::string& name, std::vector<std::string> more = {}) {
        more.insert(more.end(), {"phases={matmul: 0.02, attention: 0.5, elementwise: 0.1, recompute: 0.08, "
                                 "communication: 0.1, optimizer: 0.1, host: 0.05, data: 0.05}"});
        return sample::workload(name, more);
    };
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        const sim::Workload other = other_speed(name);
        int looked_at = 0;
        for (const json& vector : sample::vectors(name, "truth")) {
            const json asked = {{"settings", vector["settings"]}, {"patches", vector["patches"]}};
            const bool is_silent = vector["status"] != "completed" && vector["status"] != "numeric";
            const json before = ask(workload, 4, asked);
            CHECK(before["updates_done"] == (is_silent ? 0 : 30));
            CHECK(before["peak_gib"].is_null() == is_silent);
            if (is_silent) {
                ++looked_at;
                CHECK(before == ask(other, 4, asked));
            }
        }
        CHECK(looked_at > 10);
        const json failed = {{"patches", {{{"id", workload.patches[0].id}, {"attempt", 1}}}}};
        const std::vector<std::string> never = {fmt::format("patches.{}.success=0", workload.patches[0].id)};
        CHECK(ask(sample::workload(name, never), 4, failed) == ask(other_speed(name, never), 4, failed));
    }
}

TEST_CASE("attempts at several patches are charged once, and the first in the file is named", "[simulate]") {
    const auto workload = sample::workload(
        kFirst, {"patches.fused_rope.success=0", "patches.fused_swiglu.success=0", "patches.async_h2d.success=0.98"});
    const json requests[] = {{{"patches", {{{"id", "fused_swiglu"}}, {{"id", "fused_rope"}}}}},
                             {{"patches", {{{"id", "fused_rope"}}, {{"id", "fused_swiglu"}}}}}};
    for (const json& request : requests) {
        const json answer = ask(workload, 1, request);
        CHECK(answer["status"] == "crash");
        CHECK(answer["exit_code"] == 1);
        CHECK(answer["cost_units"] == 0.3);
        CHECK(answer["wall_s"] == 131.0);
        CHECK(answer["stderr"].get<std::string>().starts_with("Traceback (most recent call last):\n"));
        CHECK_THAT(answer["stderr"].get<std::string>(), Catch::Contains("patch fused_rope does not run"));
    }
    // A working implementation stays working, and a failed attempt hides even a conflict.
    CHECK(ask(workload, 1, {{"patches", {"fused_rope"}}})["status"] == "completed");
    const json conflict =
        ask(workload, 1,
            {{"settings", {{"compile", true}, {"recompute", "selective"}}}, {"patches", {{{"id", "fused_rope"}}}}});
    CHECK(conflict["cost_units"] == 0.3);
    sim::Simulator simulator(workload, 1);
    const json truth = answer_line(simulator, R"({"patches": [{"id": "fused_rope"}]})", ShowTruth::yes)["truth"];
    CHECK(truth["kind"] == "patch_failed");
}

TEST_CASE("a run that diverges ends with numbers that are none, and with exit code 0", "[simulate]") {
    const auto workload = sample::workload("w4-moe-35b-16xh100");
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const json answer = ask(workload, seed, {{"settings", {{"compile", true}, {"liger", true}}}});
        CHECK(answer["status"] == "numeric");
        CHECK(answer["exit_code"] == 0);
        const auto& loss = answer["loss"];
        std::size_t first = 0;
        while (first < loss.size() && !loss[first].is_null()) ++first;
        CHECK(first >= 4);
        CHECK(first < 22);  // 1 + ⌊0.6 · 30 · U⌋ + 4 at most
        for (std::size_t u = first; u < loss.size(); ++u) {
            CHECK(loss[u].is_null());
            CHECK(answer["grad_norm"][u].is_null());
        }
        CHECK(loss[first - 1].get<double>() > 8 * 7);
    }
}

TEST_CASE("allocation retries are the sign of the slow zone", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        for (const json& vector : sample::vectors(name, "truth")) {
            if (vector["status"] != "completed") continue;
            const json answer = ask(workload, 0, {{"settings", vector["settings"]}, {"patches", vector["patches"]}});
            const bool is_slow = vector["memory_gib"].get<double>() > sim::slow_from_gib(workload);
            CHECK((answer["alloc_retries"].get<int>() > 0) == is_slow);
            CHECK(answer["alloc_retries"].get<int>() <= 21);
            CHECK(answer["peak_gib"].get<double>() <= workload.device.capacity_gib);
            CHECK(answer["peak_reserved_gib"].get<double>() < answer["peak_gib"].get<double>());
            CHECK(answer["peak_allocated_gib"].get<double>() < answer["peak_reserved_gib"].get<double>());
        }
    }
}

TEST_CASE("each kind of breach shows where it should and nowhere else", "[simulate]") {
    struct Case {
        std::string show, key;
        std::size_t entry;  // of a series
        json wanted;
    };
    const json plain = ask(sample::workload(kFirst), 3, json::object());
    const Case cases[] = {
        {"{field: tokens, multiply: 0.94, from_update: 3}", "tokens", 2, 61604},  // 61603.84
        {"{field: sequence_length, multiply: 0.5}", "sequence_length", 0, 1024},
        {"{field: optimizer_steps, add: -1, from_update: 30}", "optimizer_steps", 29, 29},
        {"{field: parameters, multiply: 0.5}", "parameters", 0, 4500000000},
        {"{field: model_digest, salt: true}", "model_digest", 0, digest("model|cheat", 32)},
        {"{field: data_digest, salt: true, from_update: 5}", "data_digest", 4, digest("data|5|cheat", 16)},
        {"{field: frozen, salt: true, path: train/loss.py}",
         "frozen",
         0,
         {{"data/loader.py", digest("frozen|data/loader.py", 16)},
          {"train/evaluate.py", digest("frozen|train/evaluate.py", 16)},
          {"train/loss.py", digest("frozen|train/loss.py|cheat", 16)}}},
        {"{field: dtypes, set: {float16: 0.5, float32: 0}}",
         "dtypes",
         0,
         {{"bfloat16", 0.93}, {"float16", 0.5}, {"float32", 0}}}};
    for (const Case& item : cases) {
        INFO(item.show);
        json answer = ask(with_hack(item.show), 3, {{"patches", {"cheat"}}});
        const json& changed = answer[item.key];
        if (changed.is_array()) {
            CHECK(changed[item.entry] == item.wanted);
            if (item.entry > 0) CHECK(changed[item.entry - 1] == plain[item.key][item.entry - 1]);
        } else {
            CHECK(changed == item.wanted);
        }
        for (const char* key : {"tokens", "sequence_length", "optimizer_steps", "parameters", "model_digest",
                                "data_digest", "frozen", "dtypes"}) {
            if (key != item.key) CHECK(answer[key] == plain[key]);
        }
    }
    // The job's own clock may lie; the harness's does not.
    const json lie = ask(with_hack("{field: reported_step_times_s, multiply: 0.5}"), 3, {{"patches", {"cheat"}}});
    CHECK(lie["reported_step_times_s"][7].get<double>() ==
          Approx(lie["step_times_s"][7].get<double>() / 2).epsilon(1e-8));
    CHECK(lie["cost_units"].get<double>() == Approx(1).margin(0.01));
}

TEST_CASE("conflicts with the contract complete and leave evidence", "[simulate]") {
    const auto workload = sample::workload(
        kFirst, {"conflicts=[{when: {liger: true}, kind: contract, breach: {invariant: same_data, show: [{field: "
                 "data_digest, salt: true}]}}, {when: {liger: true, compile: true}, kind: hang}]"});
    const json answer = ask(workload, 3, {{"settings", {{"liger", true}}}});
    CHECK(answer["status"] == "completed");
    CHECK(answer["data_digest"][0] == digest("data|1|conflict 0", 16));
    const auto both = sample::candidate(workload, {{"liger", true}, {"compile", true}});
    CHECK(sim::truth(workload, both).kind == sim::Kind::contract);
    CHECK(sim::truth(workload, both).outcome == sim::Outcome::hang);
}

TEST_CASE("a request that is wrong is answered with why, and uses up no index", "[simulate]") {
    const auto workload = sample::workload(kFirst);
    sim::Simulator simulator(workload, 0);
    const std::pair<const char*, const char*> wrong[] = {
        {"", "not valid JSON"},
        {"nonsense", "not valid JSON"},
        {"{\"settings\": {}", "request:1:"},
        {"[]", "a request must be a JSON object"},
        {R"({"setting": {}})", "unknown key setting in the request (did you mean \"settings\"?)"},
        {R"({"settings": []})", "settings must be an object"},
        {R"({"settings": {"recompte": "none"}})", "there is no knob recompte (did you mean \"recompute\"?)"},
        {R"({"settings": {"recompute": "some"}})",
         R"(recompute has no value "some"; it has "full", "selective", "none")"},
        {R"({"settings": {"micro_batch": "2"}})", R"(micro_batch has no value "2"; it has 1, 2, 4)"},
        {R"({"settings": {"micro_batch": 2.0}})", "micro_batch has no value 2.0"},
        {R"({"settings": {"liger": null}})", "liger has no value null"},
        {R"({"settings": {"liger": [1]}})", "a setting must be a single value"},
        {R"({"patches": "fused_rope"})", "patches must be a list"},
        {R"({"patches": ["fused_rop"]})", "there is no patch fused_rop (did you mean \"fused_rope\"?)"},
        {R"({"patches": [{"id": "nothing"}]})", "there is no patch nothing"},
        {R"({"patches": [1]})", "an id or an object with an id"},
        {R"({"patches": [{"attempt": 1}]})", "an id or an object with an id"},
        {R"({"patches": ["fused_rope", {"id": "fused_rope"}]})", "the patch fused_rope is named twice"},
        {R"({"patches": [{"id": "fused_rope", "attempt": 0}]})", "attempt must be a whole number from 1 to 4"},
        {R"({"patches": [{"id": "fused_rope", "attempt": 5}]})", "attempt must be a whole number from 1 to 4"},
        {R"({"patches": [{"id": "fused_rope", "support": "none"}]})", "support must be plain, feedback or checked"},
        {R"({"patches": [{"id": "fused_rope", "help": "none"}]})", "unknown key help in a patch"},
        {R"({"index": -1})", "index must be a whole number from 0"},
        {R"({"index": 1e3})", "index must be a whole number"},
        {R"({"index": 18446744073709551615})", "index must be a whole number"},
        {R"({"repeat": "0"})", "repeat must be a whole number"},
        {R"({"updates": 0})", "updates must be a whole number from 1 to 30"},
        {R"({"updates": 31})", "updates must be a whole number from 1 to 30"},
        {R"({"profile": 1})", "profile must be true or false"}};
    for (const auto& [line, says] : wrong) {
        INFO(line);
        const json answer = answer_line(simulator, line, ShowTruth::yes);
        CHECK(answer.size() == 3);
        CHECK(answer["schema"] == "infrarsi-sim-answer-v1");
        CHECK(answer["status"] == "invalid");
        CHECK_THAT(answer["message"].get<std::string>(), Catch::Contains(says));
    }
    const json first = answer_line(simulator, "{}", ShowTruth::no);
    CHECK(first["index"] == 0);
    CHECK(first["repeat"] == 0);
    CHECK_FALSE(first.contains("truth"));
    CHECK(answer_line(simulator, "{}", ShowTruth::yes)["truth"] ==
          json({{"rel_time", 1.0}, {"memory_gib", 68.5}, {"kind", "ok"}, {"breaches", json::array()}}));
}

TEST_CASE("what an optimizer may know tells neither effects nor which patches cheat", "[simulate]") {
    for (const std::string& name : sample::workload_names()) {
        const sim::Workload workload = sample::workload(name);
        const json known = prior_json(workload, 0);
        CHECK(known["atoms"].size() == sample::facts(name)["seed_0"]["prior"].size());
        CHECK(known["knobs"].size() == workload.knobs.size());
        CHECK(known["patches"].size() == workload.patches.size());
        const std::string text = known.dump();
        for (const char* secret : {"phases", "success", "hack", "breach", "sigma", "title", "expected", "truth"}) {
            INFO(secret);
            CHECK(text.find(secret) == std::string::npos);
        }
    }
}

TEST_CASE("nine digits are those of %.9g", "[simulate]") {
    sim::RandomStream luck({"rounding"});
    for (int i = 0; i < 2000; ++i) {
        const double number = luck.normal() * std::pow(10.0, std::floor(20 * luck.uniform()) - 10);
        char text[40];
        std::snprintf(text, sizeof text, "%.9g", number);
        CHECK(sim::round_to_nine_digits(number) == std::strtod(text, nullptr));
    }
    CHECK(sim::round_to_nine_digits(0) == 0);
    CHECK(std::isnan(sim::round_to_nine_digits(std::nan(""))));
}
