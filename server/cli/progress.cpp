#include "server/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>

namespace infrarsi {

namespace {

// The speed-up of a search trial is what the search believes, not what is delivered: it says "about".
std::string outcome_text(const TrialRecord& trial) {
    if (trial.cancelled) return "stopped";
    if (trial.role != "candidate") {
        const std::string time = trial.mean_s > 0 ? fmt::format("{:.3f} s an update", trial.mean_s) : std::string();
        if (trial.outcome == OutcomeKind::valid) return time;
        return time + (time.empty() ? "" : ", ") + "not used: " + trial.verdict_reason;
    }
    switch (trial.outcome) {
        case OutcomeKind::valid: return fmt::format("{:.2f}x, valid", std::exp(trial.log_speedup));
        case OutcomeKind::rejected: return "rejected: " + trial.verdict_reason;
        case OutcomeKind::oom: return trial.verdict_reason;
        case OutcomeKind::failed: return "failed: " + trial.verdict_reason;
        case OutcomeKind::ineffective: return "no measurement: " + trial.verdict_reason;
        case OutcomeKind::transient: return "fault of the host: " + trial.verdict_reason;
    }
    return {};
}

std::string clip(const std::string& text, std::size_t width) {
    if (text.size() <= width) return text;
    std::size_t end = width > 3 ? width - 3 : 0;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // never inside a character
    return text.substr(0, end) + "...";
}

class Progress final : public CampaignObserver {
public:
    Progress(ProgressStyle style, bool verbose, std::FILE* stream, Clock& clock, ProgressBudget budget)
        : style_(style),
          verbose_(verbose),
          stream_(stream),
          clock_(clock),
          budget_(budget),
          start_(clock.monotonic()) {}
    ~Progress() override {
        clear_live();
        if (log_) std::fclose(log_);
    }

    void stage(const std::string& name, const std::string& detail, const CampaignState& state) override {
        open_log(state);
        say(fmt::format("{}: {}", name, detail));
    }

    void trial_started(const TrialRecord& trial, const CampaignState& state) override {
        open_log(state);
        updates_ = 0;
        log(fmt::format("{} started: {} ({})", trial.id, trial.candidate.describe(), trial.reason));
        if (style_ == ProgressStyle::plain || verbose_) {
            say_only(fmt::format("{} {}: {}", headline(trial, state), trial.candidate.describe(), trial.reason));
        }
        draw(trial, {}, state);
    }

    void trial_progress(const TrialRecord& trial, const TrialProgress& progress, const CampaignState& state) override {
        if (style_ != ProgressStyle::live) return;
        const auto now = clock_.monotonic();
        if (now - drawn_ < std::chrono::milliseconds(250)) return;
        drawn_ = now;
        draw(trial, progress, state);
    }

    void trial_finished(const TrialRecord& trial, const CampaignState& state) override {
        say(fmt::format("{} {}: {} ({})", headline(trial, state), trial.candidate.describe(), outcome_text(trial),
                        duration_text(trial.cost_s)));
    }

    void note(const std::string& sentence) override { say(sentence); }

private:
    std::string headline(const TrialRecord& trial, const CampaignState& state) const {
        if (trial.role != "candidate") return trial.id;
        if (budget_.screens) return fmt::format("trial {}/{}", trial.number, *budget_.screens);
        (void)state;
        return fmt::format("trial {}", trial.number);
    }

    double elapsed_s() const { return std::chrono::duration<double>(clock_.monotonic() - start_).count(); }

    // One line: trial, elapsed and remaining budget, best so far, what is tried and why.
    void draw(const TrialRecord& trial, const TrialProgress& progress, const CampaignState& state) {
        if (style_ != ProgressStyle::live) return;
        const TrialRecord* best = state.incumbent();
        std::string left;
        if (budget_.screens) left = fmt::format(", {} runs left", std::max(0, *budget_.screens - state.screens_used()));
        if (budget_.wallclock_s)
            left += fmt::format(", {} left", duration_text(std::max(0.0, *budget_.wallclock_s - elapsed_s())));
        std::string line =
            fmt::format("[{}{}] best {} | {} update {} | {}: {}", duration_text(elapsed_s()), left,
                        best ? fmt::format("{:.2f}x", std::exp(best->log_speedup)) : std::string("1.00x"),
                        headline(trial, state), progress.updates, trial.candidate.describe(), trial.reason);
        winsize size{};
        const std::size_t width =
            ::ioctl(fileno(stream_), TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col : 80;
        std::fprintf(stream_, "\r\033[K%s", clip(line, width - 1).c_str());
        std::fflush(stream_);
        live_ = true;
    }

    void clear_live() {
        if (live_) std::fprintf(stream_, "\r\033[K");
        live_ = false;
    }

    void say_only(const std::string& line) {
        clear_live();
        std::fprintf(stream_, "%s\n", line.c_str());
        std::fflush(stream_);
    }

    void say(const std::string& line) {
        log(line);
        say_only(line);
    }

    void open_log(const CampaignState& state) {
        if (log_ || state.run_dir.empty()) return;
        log_ = std::fopen((state.run_dir / "run.log").c_str(), "ae");
    }

    void log(const std::string& line) {
        if (!log_) return;
        std::fprintf(log_, "%.3f %s\n", clock_.wall_s(), line.c_str());
        std::fflush(log_);
    }

    ProgressStyle style_;
    bool verbose_;
    std::FILE* stream_;
    Clock& clock_;
    ProgressBudget budget_;
    std::chrono::nanoseconds start_;
    std::chrono::nanoseconds drawn_{0};
    std::FILE* log_ = nullptr;
    bool live_ = false;
    int updates_ = 0;
};

}  // namespace

std::string duration_text(double seconds) {
    const auto whole = static_cast<long long>(std::llround(std::max(0.0, seconds)));
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{} m {:02} s", whole / 60, whole % 60);
    return fmt::format("{} h {:02} m", whole / 3600, whole / 60 % 60);
}

std::unique_ptr<CampaignObserver> make_progress(ProgressStyle style, bool verbose, std::FILE* stream, Clock& clock,
                                                ProgressBudget budget) {
    return std::make_unique<Progress>(style, verbose, stream, clock, budget);
}

}  // namespace infrarsi
