#include "core/repo/config_file.h"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "core/contract/yaml_edit.h"
#include "core/repo/config_scan.h"

namespace infrarsi {
namespace {

Expected<ConfigMap> scan(std::string_view text, ConfigFormat format, const std::string& name) {
    return format == ConfigFormat::json ? scan_json(text, name) : scan_toml(text, name);
}

Value read_scalar(std::string_view raw, ConfigFormat format) {
    if (raw.starts_with('"') && raw.find("\"\"\"") != 0) {
        const auto parsed = nlohmann::json::parse(raw, nullptr, false);
        if (parsed.is_string()) return parsed.get<std::string>();
        return std::string(raw.substr(1, raw.size() - 2));
    }
    if (raw.starts_with('\'')) return std::string(raw.substr(1, raw.size() - 2));
    std::string plain(raw);
    if (format == ConfigFormat::toml) {  // 1_000_000
        std::string digits = plain;
        std::erase(digits, '_');
        if (to_number(value_from_text(digits))) plain = digits;
    }
    return value_from_text(plain);
}

std::string write_scalar(const Value& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
        return nlohmann::json(*text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    return to_text(value);
}

void flatten(const YAML::Node& node, const std::string& key, int line, std::vector<ConfigScalar>& scalars,
             int depth = 0) {
    const auto join = [&](const std::string& part) { return key.empty() ? part : key + "." + part; };
    if (depth > 100) return;
    if (node.IsMap()) {
        for (const auto& item : node) {
            if (!item.first.IsScalar()) continue;
            flatten(item.second, join(item.first.Scalar()), item.first.Mark().line + 1, scalars, depth + 1);
        }
    } else if (node.IsSequence()) {
        std::size_t index = 0;
        for (const auto& item : node)
            flatten(item, join(std::to_string(index++)), item.Mark().line + 1, scalars, depth + 1);
    } else if (node.IsScalar()) {
        const bool quoted = node.Tag() == "!";
        scalars.push_back({key, quoted ? Value(node.Scalar()) : value_from_text(node.Scalar()), node.Mark().line + 1});
    } else if (node.IsNull()) {
        scalars.push_back({key, Value{}, line});  // yaml-cpp puts an empty value after its line
    }
}

Expected<std::vector<ConfigScalar>> yaml_scalars(std::string_view text, const std::string& name) {
    try {
        std::vector<ConfigScalar> scalars;
        flatten(YAML::Load(std::string(text)), "", 1, scalars);
        return scalars;
    } catch (const YAML::Exception& error) {
        return fail_at(ErrorKind::invalid_input, {name, error.mark.line + 1, error.mark.column + 1},
                       "this is not YAML that can be read: {}", error.msg);
    }
}

std::vector<std::string> split(const std::string& key) {
    std::vector<std::string> path;
    std::size_t begin = 0;
    for (;;) {
        const std::size_t dot = key.find('.', begin);
        path.push_back(key.substr(begin, dot == std::string::npos ? dot : dot - begin));
        if (dot == std::string::npos) return path;
        begin = dot + 1;
    }
}

Expected<std::string> add_member(std::string_view text, ConfigFormat format, const ConfigMap& map,
                                 const std::string& key, const Value& value, const std::string& name) {
    const std::size_t dot = key.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : key.substr(0, dot);
    const std::string leaf = dot == std::string::npos ? key : key.substr(dot + 1);
    const auto is_parent = [&](const ConfigTable& table) { return table.key == parent; };
    const auto table = std::find_if(map.tables.begin(), map.tables.end(), is_parent);
    if (table == map.tables.end()) {
        return fail(ErrorKind::not_found, "{} has no {}, so {} cannot be set in it; correct the knob's path", name,
                    parent, key);
    }
    std::string result(text);
    if (format == ConfigFormat::json) {
        const std::string member = nlohmann::json(leaf).dump() + ": " + write_scalar(value);
        result.insert(table->insert_at,
                      (table->is_empty ? "" : ",") +
                          (table->indent.empty() ? std::string(table->is_empty ? "" : " ") : table->indent) + member);
    } else {
        const std::string line = leaf + " = " + write_scalar(value);
        const bool at_top = table->insert_at == 0;
        result.insert(table->insert_at, at_top ? line + "\n" : "\n" + line);
    }
    return result;
}

}  // namespace

std::optional<ConfigFormat> config_format(std::string_view path) {
    if (path.ends_with(".yaml") || path.ends_with(".yml")) return ConfigFormat::yaml;
    if (path.ends_with(".json") || path.ends_with(".json5") || path.ends_with(".jsonc")) return ConfigFormat::json;
    if (path.ends_with(".toml")) return ConfigFormat::toml;
    return std::nullopt;
}

Expected<std::vector<ConfigScalar>> config_scalars(std::string_view text, ConfigFormat format,
                                                   const std::string& name) {
    if (format == ConfigFormat::yaml) return yaml_scalars(text, name);
    INFRARSI_ASSIGN(const ConfigMap map, scan(text, format, name));
    std::vector<ConfigScalar> scalars;
    int line = 1;
    std::size_t counted = 0;
    for (const ConfigSpot& spot : map.scalars) {
        line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                            text.begin() + static_cast<std::ptrdiff_t>(spot.begin), '\n'));
        counted = spot.begin;
        scalars.push_back({spot.key, read_scalar(text.substr(spot.begin, spot.end - spot.begin), format), line});
    }
    return scalars;
}

Expected<ConfigScalar> get_config(std::string_view text, ConfigFormat format, const std::string& key,
                                  const std::string& name) {
    INFRARSI_ASSIGN(auto scalars, config_scalars(text, format, name));
    for (ConfigScalar& scalar : scalars) {
        if (scalar.key == key) return std::move(scalar);
    }
    return fail(ErrorKind::not_found, "{} has no value at {}", name, key);
}

Expected<std::string> set_config(std::string_view text, ConfigFormat format, const std::string& key, const Value& value,
                                 const std::string& name) {
    if (format == ConfigFormat::yaml) return set_yaml_scalar(text, split(key), value);
    INFRARSI_ASSIGN(const ConfigMap map, scan(text, format, name));
    for (const ConfigSpot& spot : map.scalars) {
        if (spot.key != key) continue;
        std::string result(text);
        if (is_null(value) && format == ConfigFormat::toml) {
            const std::size_t newline = spot.begin == 0 ? std::string::npos : result.rfind('\n', spot.begin);
            const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
            const std::size_t end = std::min(result.find('\n', spot.end), result.size() - 1) + 1;
            result.erase(begin, end - begin);
        } else {
            result.replace(spot.begin, spot.end - spot.begin, write_scalar(value));
        }
        return result;
    }
    const bool is_list = std::find(map.lists.begin(), map.lists.end(), key) != map.lists.end();
    const bool is_table =
        std::any_of(map.tables.begin(), map.tables.end(), [&](const ConfigTable& table) { return table.key == key; });
    if (is_list || is_table) {
        return fail_at(ErrorKind::invalid_input, {name}, "{} holds a {}, which a knob cannot replace", key,
                       is_list ? "list" : "table");
    }
    if (is_null(value)) return std::string(text);
    return add_member(text, format, map, key, value, name);
}

}  // namespace infrarsi
