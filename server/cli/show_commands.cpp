// report, apply, completion: commands that run nothing on a device.

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/campaign/apply.h"
#include "core/campaign/user_key.h"
#include "core/report/report.h"
#include "server/cli/adopt.h"
#include "server/cli/exit_codes.h"
#include "server/cli/output.h"
#include "server/cli/program.h"

namespace infrarsi {

using nlohmann::json;

Expected<int> run_report(const Program& program, const Options& options) {
    INFRARSI_ASSIGN(const std::string key, user_key(program.config_dir));
    INFRARSI_ASSIGN(const auto run_dir, find_run(program, options));
    INFRARSI_ASSIGN(const CampaignState state, load_state(run_dir, key));
    if (options.json) {
        print_out(pretty_json(to_json(state)));
        return kExitDone;
    }
    INFRARSI_ASSIGN(const Contract contract, campaign_contract(state));
    print_out(render_report(state, contract));
    return kExitDone;
}

Expected<int> run_apply(const Program& program, const Options& options) {
    INFRARSI_ASSIGN(const std::string key, user_key(program.config_dir));
    INFRARSI_ASSIGN(const auto run_dir, find_run(program, options));
    INFRARSI_ASSIGN(const CampaignState state, load_state(run_dir, key));
    if (state.result && !state.result->promoted) {
        if (options.json) {
            print_out(pretty_json({{"files", json::array()}, {"written", false}, {"why", state.result->reason}}));
        } else {
            print_out(fmt::format("Nothing to apply: {}. The job stays as it is (1.00x).\n", state.result->reason));
        }
        return kExitDone;
    }
    INFRARSI_ASSIGN(const ApplyPlan plan, plan_apply(state));
    const Adoption how = options.branch ? Adoption::branch : options.write ? Adoption::write : Adoption::show;
    INFRARSI_ASSIGN(const json done, adopt(plan, state, how, options.branch.value_or("")));
    if (options.json) {
        print_out(pretty_json(done));
    } else {
        print_out(describe_adoption(plan, state, done));
    }
    return kExitDone;
}

Expected<int> run_completion(const Program&, const Options& options) {
    static constexpr std::string_view kCommands =
        "init doctor run report apply optimize finish verify simulate bench completion";
    if (options.shell == "bash") {
        print_out(
            fmt::format("_infrarsi() {{\n"
                        "  local cur=\"${{COMP_WORDS[COMP_CWORD]}}\" sub=\"${{COMP_WORDS[1]}}\"\n"
                        "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                        "    COMPREPLY=($(compgen -W \"{0} --help --version\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
                        "  elif [ \"$COMP_CWORD:$sub\" = 2:bench ]; then\n"
                        "    COMPREPLY=($(compgen -W search -- \"$cur\"))\n"
                        "  elif [[ \"$cur\" == -* ]]; then\n"
                        "    [ \"$sub\" = bench ] && sub='bench search'\n"
                        "    COMPREPLY=($(compgen -W \"$(infrarsi $sub --help 2>/dev/null | grep -oE -- "
                        "'--[a-z-]+' | sort -u)\" -- \"$cur\"))\n"
                        "  else\n"
                        "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                        "  fi\n"
                        "}}\n"
                        "complete -o filenames -F _infrarsi infrarsi\n",
                        kCommands));
    } else if (options.shell == "zsh") {
        print_out(
            fmt::format("#compdef infrarsi\n"
                        "_infrarsi() {{\n"
                        "  if (( CURRENT == 2 )); then\n"
                        "    compadd {0}; _files\n"
                        "  elif [[ $CURRENT:$words[2] == 3:bench ]]; then\n"
                        "    compadd search\n"
                        "  elif [[ $PREFIX == -* ]]; then\n"
                        "    compadd -- $(infrarsi ${{=words[2]/#%bench/bench search}} --help 2>/dev/null | grep -oE "
                        "-- '--[a-z-]+' | sort -u)\n"
                        "  else\n"
                        "    _files\n"
                        "  fi\n"
                        "}}\n"
                        "compdef _infrarsi infrarsi\n",
                        kCommands));
    } else {
        print_out(
            fmt::format("complete -c infrarsi -n __fish_use_subcommand -a '{}'\n"
                        "complete -c infrarsi -n '__fish_seen_subcommand_from bench' -a search\n"
                        "complete -c infrarsi -n 'not __fish_use_subcommand' -a "
                        "'(infrarsi (string split \" \" (string replace -r \"^bench\\$\" \"bench search\" (commandline "
                        "-opc)[2])) --help 2>/dev/null | string match -ra -- \"--[a-z-]+\" | sort -u)'\n",
                        kCommands));
    }
    return kExitDone;
}

}  // namespace infrarsi
