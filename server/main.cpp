// The program: flags, wiring, nothing else.

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "server/cli/exit_codes.h"
#include "server/cli/options.h"
#include "server/cli/output.h"
#include "server/cli/places.h"
#include "server/cli/program.h"
#include "server/cli/signals.h"

namespace infrarsi {
namespace {

Expected<int> dispatch(const Program& program, const Options& options) {
    switch (options.command) {
        case Command::init: return run_init(program, options);
        case Command::doctor: return run_doctor(program, options);
        case Command::run: return run_search(program, options);
        case Command::optimize: return run_optimize(program, options);
        case Command::finish: return run_finish(program, options);
        case Command::report: return run_report(program, options);
        case Command::apply: return run_apply(program, options);
        case Command::verify: return run_verify(program, options);
        case Command::simulate: return run_simulate(program, options);
        case Command::bench_search: return run_bench_search(program, options);
        case Command::completion: return run_completion(program, options);
        case Command::bench:
        case Command::none: break;
    }
    return kExitDone;
}

// The others run nothing that must be stopped with care: there, Ctrl-C is the system's.
bool runs_trials(Command command) {
    return command == Command::doctor || command == Command::run || command == Command::optimize ||
           command == Command::finish;
}

int report_error(const Error& error, bool as_json) {
    if (as_json) {
        nlohmann::json body = {{"error", {{"kind", to_string(error.kind())}, {"message", error.describe()}}}};
        if (error.place()) {
            body["error"]["place"] = {
                {"path", error.place()->path}, {"line", error.place()->line}, {"column", error.place()->column}};
        }
        print_out(pretty_json(body));
    }
    print_err("infrarsi: " + error.describe() + "\n");
    return exit_code_of(error.kind());
}

// The number of a closed stream would go to the next file that is opened, the journal say, and take the words meant for
// a terminal.
void occupy_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
            const int opened = ::open("/dev/null", O_RDWR);
    }
}

int run(int argc, char** argv, char** env) {
    occupy_standard_streams();
    std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone away is no fault of ours
    const ParsedLine line = parse_command_line({argv + 1, argv + argc});
    if (line.exit_code) {
        (*line.exit_code == 0 ? print_out : print_err)(line.text);
        return *line.exit_code;
    }
    Interrupts interrupts(line.options.on_interrupt);
    std::optional<SignalWatch> signals;
    if (runs_trials(line.options.command)) signals.emplace(interrupts);
    SystemClock clock;
    const auto target = make_local_target();
    Program program;
    program.clock = &clock;
    program.target = target.get();
    program.interrupts = &interrupts;
    program.env = environment_map(env);
    std::error_code error;
    program.working_dir = std::filesystem::current_path(error);
    if (error) {
        return report_error(
            Error(ErrorKind::not_found, "the folder that this was started in is gone: " + error.message()),
            line.options.json);
    }
    program.config_dir = config_dir(program.env);
    program.data_dir = data_dir();
    program.stderr_is_terminal = ::isatty(STDERR_FILENO) == 1;
    const auto code = dispatch(program, line.options);
    if (!code) return report_error(code.error(), line.options.json);
    if (is_out_complete()) return *code;
    return report_error(Error(ErrorKind::io, "what this printed could not be written in full; is the disk full?"),
                        false);
}

}  // namespace
}  // namespace infrarsi

int main(int argc, char** argv, char** env) {
    try {
        return infrarsi::run(argc, argv, env);
    } catch (const std::exception& error) {
        infrarsi::print_err(std::string("infrarsi: internal error: ") + error.what() + "\n");
        return infrarsi::exit_code_of(infrarsi::ErrorKind::internal);
    }
}
