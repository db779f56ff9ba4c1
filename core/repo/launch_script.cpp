#include "core/repo/launch_script.h"

#include "core/repo/launch_follower.h"

namespace infrarsi {

std::string_view to_string(Launcher launcher) {
    switch (launcher) {
        case Launcher::python: return "python";
        case Launcher::torchrun: return "torchrun";
        case Launcher::accelerate: return "accelerate";
        case Launcher::deepspeed: return "deepspeed";
    }
    return "python";
}

Expected<LaunchPlan> read_launch(const LaunchRequest& request) {
    return LaunchFollower(request).run();
}

int line_at(std::string_view text, std::size_t offset) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
    return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

std::optional<FlagUse> find_flag(const LaunchPlan& plan, const std::string& flag) {
    const auto same = [](std::string_view a, std::string_view b, bool loose) {
        if (!loose) return a == b;
        return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [](char x, char y) { return (x == '_' ? '-' : x) == (y == '_' ? '-' : y); });
    };
    for (const bool loose : {false, true}) {
        for (std::size_t i = plan.arguments.size(); i-- > 0;) {
            const std::string& text = plan.arguments[i].value.text();
            const std::size_t equals = text.starts_with("-") ? text.find('=') : std::string::npos;
            if (!same(text.substr(0, equals), flag, loose)) continue;
            FlagUse use{i, equals != std::string::npos, false, "", 0};
            if (use.equals) {
                use.has_value = true;
                use.value_at = equals + 1;
                use.value = text.substr(equals + 1);
            } else if (i + 1 < plan.arguments.size()) {
                const std::string& next = plan.arguments[i + 1].value.text();
                const bool is_number = next.size() > 1 && next[0] == '-' &&
                                       (std::isdigit(static_cast<unsigned char>(next[1])) != 0 || next[1] == '.');
                use.has_value = !next.starts_with("-") || is_number || next == "-";
                if (use.has_value) use.value = next;
            }
            return use;
        }
    }
    return std::nullopt;
}

}  // namespace infrarsi
