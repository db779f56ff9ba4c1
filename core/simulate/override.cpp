#include "core/simulate/override.h"

#include <algorithm>

namespace infrarsi::sim {

namespace {

void forget_places(YamlNode& node) {
    node.line = node.column = 0;
    for (YamlNode& item : node.items) forget_places(item);
    for (YamlEntry& entry : node.entries) {
        entry.key.line = entry.key.column = 0;
        forget_places(entry.value);
    }
}

bool is_called(const YamlNode& item, std::string_view name) {
    for (const std::string_view key : {"name", "id"}) {
        const YamlNode* found = item.find(key);
        if (found && found->kind == YamlNode::Kind::scalar && found->text == name) return true;
    }
    return false;
}

YamlNode* find_child(YamlNode& node, const std::string& step) {
    if (node.kind == YamlNode::Kind::map) {
        for (YamlEntry& entry : node.entries) {
            if (entry.key.text == step) return &entry.value;
        }
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        if (is_called(node.items[i], step) || std::to_string(i) == step) return &node.items[i];
    }
    return nullptr;
}

std::vector<std::string> split_path(std::string_view path) {
    std::vector<std::string> steps(1);
    for (const char c : path) {
        if (c == '.') {
            steps.emplace_back();
        } else {
            steps.back() += c;
        }
    }
    return steps;
}

}  // namespace

Expected<void> apply_override(YamlNode& root, const std::string& override_text) {
    const std::size_t equals = override_text.find('=');
    if (equals == std::string::npos || equals == 0) {
        return fail(ErrorKind::invalid_input, "--set {} must be PATH=VALUE, such as noise.sigma_pair=0.01",
                    override_text);
    }
    INFRARSI_ASSIGN(YamlNode value, parse_yaml(std::string_view(override_text).substr(equals + 1), "--set value"));
    forget_places(value);
    const std::vector<std::string> steps = split_path(std::string_view(override_text).substr(0, equals));
    YamlNode* node = &root;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        YamlNode* child = find_child(*node, steps[i]);
        if (!child && i + 1 == steps.size() && node->kind == YamlNode::Kind::map) {
            // A key with a default, or an unknown one: the reader knows.
            YamlNode key;
            key.kind = YamlNode::Kind::scalar;
            key.text = steps[i];
            node->entries.push_back({key, value});
            return {};
        }
        if (!child) {
            return fail(ErrorKind::invalid_input, "--set {} names nothing: there is no {} in {}", override_text,
                        steps[i], i == 0 ? "the workload" : steps[i - 1]);
        }
        node = child;
    }
    *node = std::move(value);
    return {};
}

}  // namespace infrarsi::sim
