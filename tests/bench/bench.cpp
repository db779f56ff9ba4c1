// Prints what the engine costs on this machine, one JSON line a figure: infrarsi_bench PROGRAM [FIGURE...]. Run it by
// tests/bench/run.sh, which says what a line holds. Inputs are made or recorded; nothing is downloaded or trained.

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "core/base/env.h"
#include "core/base/files.h"
#include "core/campaign/init.h"
#include "core/exec/process.h"
#include "core/measure/log_reader.h"
#include "core/measure/noise.h"
#include "core/search/memory_ledger.h"
#include "core/search/surrogate.h"
#include "core/simulate/oracle.h"
#include "core/simulate/simulator.h"
#include "core/testing/temp_dir.h"
#include "core/trial/receipt.h"
#include "core/verify/verdict.h"

using namespace infrarsi;

namespace {

namespace fs = std::filesystem;

enum class Time {
    wall,
    cpu  // of this process: what a computation takes where nothing else runs
};

double now(Time kind) {
    timespec time{};
    ::clock_gettime(kind == Time::wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Seconds of one run, the median of `runs`; `before` is not timed.
double median_seconds(
    Time kind, int runs, const std::function<void()>& work, const std::function<void()>& before = [] {}) {
    std::vector<double> all;
    for (int i = 0; i < runs; ++i) {
        before();
        const double start = now(kind);
        work();
        all.push_back(now(kind) - start);
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

[[noreturn]] void give_up(const Error& error) {
    std::fprintf(stderr, "infrarsi_bench: %s\n", error.describe().c_str());
    std::exit(1);
}

template <class T>
T must(Expected<T> value) {
    if (!value) give_up(value.error());
    return std::move(*value);
}

// Keeps a result from being optimised away.
void keep(double value) {
    [[maybe_unused]] volatile double kept = value;
}

class Figures {
public:
    explicit Figures(std::vector<std::string> wanted) : wanted_(std::move(wanted)) {}
    [[nodiscard]] bool wants(const std::string& name) const {
        return wanted_.empty() || std::any_of(wanted_.begin(), wanted_.end(), [&](const std::string& word) {
                   return name.find(word) != std::string::npos;
               });
    }
    void print(const std::string& name, double value, const char* unit, const char* goal) const {
        nlohmann::ordered_json line = {{"figure", name}, {"value", std::round(value * 1000) / 1000}, {"unit", unit}};
        line["goal"] = goal == nullptr ? nlohmann::ordered_json() : nlohmann::ordered_json(goal);
        std::printf("%s\n", line.dump().c_str());
        std::fflush(stdout);
    }

private:
    std::vector<std::string> wanted_;
};

void run_program(const std::vector<std::string>& argv, const fs::path& cwd) {
    const std::map<std::string, std::string> env = {{"PATH", "/usr/bin:/bin"}};
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int pid = must(spawn({.argv = argv, .env = env, .cwd = cwd, .out_fd = null, .err_fd = null}));
    int status = 0;
    ::waitpid(pid, &status, 0);
    ::close(null);
    if (status != 0) give_up(Error(ErrorKind::internal, argv[0] + " failed"));
}

void process_start(const Figures& figures, const std::string& program) {
    const std::string name = "process start (--version)";
    if (!figures.wants(name)) return;
    figures.print(name, 1000 * median_seconds(Time::wall, 51, [&] { run_program({program, "--version"}, "/"); }), "ms",
                  nullptr);
}

// A git repository of 2,000 files: the example job, and packages around it that it does not import.
std::map<std::string, std::string> large_project() {
    auto files = read_tree(fs::path(INFRARSI_SOURCE_DIR) / "examples/tinygpt");
    std::erase_if(files, [](const auto& file) { return file.first.find("__pycache__") != std::string::npos; });
    std::string body;
    for (int i = 0; i < 30; ++i) {
        body += fmt::format(
            "\ndef step_{0}(x, scale={0}):\n    \"\"\"One of many.\"\"\"\n    y = x * scale + {0}\n"
            "    return [y for _ in range({0})]\n",
            i);
    }
    for (int i = 0; files.size() < 2000; ++i) {
        files[fmt::format("lib_{:02}/module_{:03}.py", i % 40, i)] =
            fmt::format("import math\nimport module_{}\n", i) + body;
    }
    return files;
}

// Drops what the page cache holds of the files (not their inodes, which needs root).
void make_cold(const std::vector<fs::path>& files) {
    for (const auto& file : files) {
        const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
        ::fsync(fd);
        ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        ::close(fd);
    }
}

void quick_init(const Figures& figures) {
    const std::string name = "quick init, 2,000 files";
    if (!figures.wants(name)) return;
    const auto files = large_project();
    const TempDir project(files);
    run_program({"git", "init", "-q"}, project.path());
    std::vector<fs::path> paths;
    for (const auto& [file, text] : files) paths.push_back(project / file);
    const MechanismTable mechanisms = shipped_mechanisms();
    const auto draft = [&] {
        keep(static_cast<double>(must(draft_contract(project.path(), {}, {2, 0}, mechanisms)).contract.knobs.size()));
    };
    figures.print(name + ", cold", 1000 * median_seconds(Time::wall, 5, draft, [&] { make_cold(paths); }), "ms",
                  "< 400");
    figures.print(name + ", warm", 1000 * median_seconds(Time::wall, 11, draft), "ms", "< 20");
}

void log_reader(const Figures& figures) {
    const std::string name = "log reader";
    if (!figures.wants(name)) return;
    // A job's log as it is: updates, and chatter between them.
    std::string log;
    for (int step = 0; log.size() < (64u << 20); ++step) {
        log += fmt::format("step {}/100000 | loss: {:.4f} | norm: 0.82 | lr: 3.0e-04 | dt: {:.2f}ms | tok/s: 80312\n",
                           step, 4.0 - step * 1e-6, 612.0 + step % 7);
        if (step % 10 == 0)
            log += "[rank0]: saving nothing, since no checkpoint is due at this update yet; next at 1000\n";
    }
    const double seconds = median_seconds(Time::cpu, 5, [&] {
        const auto reader = make_log_reader(Stack{});
        for (std::size_t at = 0; at < log.size();) {
            const std::size_t end = log.find('\n', at);
            const auto reading = reader->read(clean_line(std::string_view(log).substr(at, end - at)));
            keep(reading ? 1 : 0);
            at = end + 1;
        }
    });
    figures.print(name, static_cast<double>(log.size()) / 1e6 / seconds, "MB/s", "> 500");
}

void rejudge(const Figures& figures) {
    constexpr int kReceipts = 1212;  // of the paper's corpus
    const std::string name = "re-judging 1,212 receipts";
    if (!figures.wants(name)) return;
    const fs::path folder = fs::path(INFRARSI_SOURCE_DIR) / "seeds/receipts";
    const std::string key_line = must(read_file(folder / "key.txt"));
    const std::string_view key = std::string_view(key_line).substr(0, key_line.find('\n'));
    const std::string text = must(read_file(folder / "candidate.json"));
    const Receipt candidate = must(open_receipt(text, key, "candidate"));
    ReferenceEvidence evidence;
    evidence.reference = must(open_receipt(must(read_file(folder / "reference.json")), key, "reference"));
    evidence.repeats = {must(open_receipt(must(read_file(folder / "repeat.json")), key, "repeat"))};
    evidence.noise = estimate_noise({evidence.reference, evidence.repeats[0]});
    const auto judging = [&] {
        for (int i = 0; i < kReceipts; ++i) keep(judge(candidate, evidence, {}).valid ? 1 : 0);
    };
    const auto opening = [&] {
        for (int i = 0; i < kReceipts; ++i) keep(open_receipt(text, key, "candidate") ? 1 : 0);
    };
    figures.print(name, 1000 * median_seconds(Time::cpu, 5, judging), "ms", "< 100");
    figures.print(name + ": opening and checking them first (96 kB each)", 1000 * median_seconds(Time::cpu, 3, opening),
                  "ms", nullptr);
}

void models(const Figures& figures) {
    constexpr int kTrials = 200, kFeatures = 400;
    const std::string name = "surrogate + ledger update, 200 trials x 400 features";
    if (!figures.wants(name)) return;
    Random random(1);
    TimePrior time;
    MemoryPrior memory{.mean = {}, .sigma = {}, .base = 60, .base_sigma = 0.5, .sigma_obs = 1.6};
    for (int i = 0; i < kFeatures; ++i) {
        time.mean.push_back(0.05 * random.normal());
        time.sigma.push_back(0.1);
        time.slope.push_back(time.mean.back());
        memory.mean.push_back(random.normal());
        memory.sigma.push_back(4);
    }
    time.slope_variance = 0.25;
    std::vector<SparseRow> rows;
    std::vector<double> ys, sigmas;
    std::vector<MemoryEvidence> peaks;
    for (int trial = 0; trial < kTrials; ++trial) {
        SparseRow row;  // eight of the settings changed, as a late candidate has
        for (int i = 0; i < kFeatures; ++i) {
            if (random.uniform() < 8.0 / kFeatures) row.push_back({i, 1.0});
        }
        const bool fits = random.uniform() < 0.9;
        peaks.push_back(
            {row, fits ? MemoryKind::measured : MemoryKind::at_least, fits ? 60 + 3 * random.normal() : 78, 0});
        rows.push_back(std::move(row));
        ys.push_back(0.1 * random.normal());
        sigmas.push_back(0.01);
    }
    const double seconds = median_seconds(Time::cpu, 21, [&] {
        Surrogate surrogate(time);
        surrogate.observe_all(rows, ys, sigmas);
        const auto ledger = MemoryLedger::fit(memory, peaks);
        keep(surrogate.predict(rows[0]).mean + ledger.need(rows[0]).mean);
    });
    figures.print(name, 1000 * seconds, "ms", "< 10");
}

// Comparing searches asks millions of answers, so each must be cheap.
void simulated_job(const Figures& figures) {
    constexpr int kAnswers = 2000;
    const std::string name = "simulated job";
    if (!figures.wants(name)) return;
    const sim::Workload workload =
        must(sim::load_workload(fs::path(INFRARSI_SOURCE_DIR) / "seeds/workloads/w1-dense-9b-8xh100.yaml"));
    sim::Simulator simulator(workload, 1);
    sim::Request request;
    request.candidate = sim::reference_candidate(workload);
    const auto answering = [&] {
        for (int i = 0; i < kAnswers; ++i) keep(simulator.answer(request).cost_units);
    };
    figures.print(name + ": one answer", 1e6 * median_seconds(Time::cpu, 11, answering) / kAnswers, "us", "< 200");
    request.detail = sim::Detail::times;
    figures.print(name + ": its times alone", 1e6 * median_seconds(Time::cpu, 11, answering) / kAnswers, "us", nullptr);
    const auto knowing = [&] { keep(sim::find_optimum(workload, sim::Levers::knobs_and_patches)->speedup); };
    figures.print(name + ": optimum", 1000 * median_seconds(Time::cpu, 11, knowing), "ms", nullptr);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: infrarsi_bench PROGRAM [FIGURE...]\n");
        return 2;
    }
    const Figures figures({argv + 2, argv + argc});
    process_start(figures, argv[1]);
    quick_init(figures);
    log_reader(figures);
    rejudge(figures);
    models(figures);
    simulated_job(figures);
    return 0;
}
