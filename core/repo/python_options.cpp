#include "core/repo/python_options.h"

#include "core/repo/python_literal.h"

namespace infrarsi {
namespace {

std::string last_part(std::string_view dotted) {
    const std::size_t dot = dotted.rfind('.');
    return std::string(dot == std::string_view::npos ? dotted : dotted.substr(dot + 1));
}

std::string snake(std::string name) {
    while (name.starts_with('-')) name.erase(0, 1);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

// The arguments of a call: positional ones in order, keywords by name.
struct Call {
    std::vector<TSNode> positional;
    std::map<std::string, TSNode> keywords;
};

Call call_of(TSNode call, std::string_view text) {
    Call result;
    for_each_child(field_of(call, "arguments"), [&](TSNode argument) {
        if (type_of(argument) == "keyword_argument") {
            result.keywords[std::string(text_of(field_of(argument, "name"), text))] = field_of(argument, "value");
        } else if (type_of(argument) != "comment") {
            result.positional.push_back(argument);
        }
    });
    return result;
}

class Reader {
public:
    Reader(std::string_view text, const std::string& path) : text_(text) {
        file_.path = path;
        file_.bytes = text.size();
    }

    PythonFile run() {
        const SyntaxTree tree = SyntaxTree::parse(tree_sitter_python(), text_);
        for_each_child(tree.root(), [&](TSNode node) { module_statement(node); });
        walk(tree.root());
        add_dataclass_options();
        add_global_options();
        return std::move(file_);
    }

private:
    std::string text(TSNode node) const { return std::string(text_of(node, text_)); }
    std::optional<Value> literal(TSNode node) const { return python_literal(node, text_, file_.globals); }
    std::string words(TSNode node) const {
        const auto value = literal(node);
        const auto* string = value ? std::get_if<std::string>(&*value) : nullptr;
        return string ? *string : "";
    }

    // Module-level assignments, in order, until a configurator takes over.
    void module_statement(TSNode node) {
        if (type_of(node) != "expression_statement") return;
        const TSNode inner = ts_node_named_child(node, 0);
        if (type_of(inner) == "assignment") {
            const TSNode left = field_of(inner, "left");
            if (type_of(left) != "identifier") return;
            const auto value = literal(field_of(inner, "right"));
            if (!value) return;
            file_.globals[text(left)] = *value;
            if (configurator_line_ == 0) global_lines_[text(left)] = {line_of(inner), *value};
        } else if (type_of(inner) == "call" && text(field_of(inner, "function")) == "exec" &&
                   text(inner).find("open(") != std::string::npos) {
            configurator_line_ = line_of(inner);
        }
    }

    // All nodes, without recursion: sources come from anyone.
    void walk(TSNode root) {
        TSTreeCursor cursor = ts_tree_cursor_new(root);
        for (bool more = true; more;) {
            visit(ts_tree_cursor_current_node(&cursor));
            if (ts_tree_cursor_goto_first_child(&cursor)) continue;
            while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
                if (!ts_tree_cursor_goto_parent(&cursor)) {
                    more = false;
                    break;
                }
            }
        }
        ts_tree_cursor_delete(&cursor);
    }

    void visit(TSNode node) {
        if (!ts_node_is_named(node)) return;
        const std::string_view type = type_of(node);
        if (type == "call") {
            visit_call(node);
        } else if (type == "import_statement" || type == "import_from_statement") {
            visit_import(node, type == "import_from_statement");
        } else if (type == "class_definition") {
            visit_class(node);
        } else if (type == "function_definition") {
            file_.definitions.push_back({text(field_of(node, "name")), {}, false, line_of(node)});
        }
    }

    void visit_import(TSNode node, bool from) {
        const std::string module = from ? text(field_of(node, "module_name")) : "";
        if (from) add_import(module);
        const std::uint32_t count = ts_node_child_count(node);
        for (std::uint32_t i = 0; i < count; ++i) {
            const char* field = ts_node_field_name_for_child(node, i);
            if (field == nullptr || std::string_view(field) != "name") continue;
            TSNode name = ts_node_child(node, i);
            if (type_of(name) == "aliased_import") name = field_of(name, "name");
            const std::string joint = module.empty() || module.ends_with('.') ? "" : ".";
            add_import(from ? module + joint + text(name) : text(name));
        }
    }

    void add_import(const std::string& dotted) {
        file_.imports.push_back(dotted);
        const std::string top = dotted.substr(0, dotted.find('.'));
        if (!top.empty() && std::find(file_.modules.begin(), file_.modules.end(), top) == file_.modules.end()) {
            file_.modules.push_back(top);
        }
    }

    void visit_class(TSNode node) {
        PythonDefinition definition{text(field_of(node, "name")), {}, true, line_of(node)};
        const TSNode bases = field_of(node, "superclasses");
        if (!ts_node_is_null(bases)) {
            for_each_child(bases, [&](TSNode base) { definition.bases.push_back(text(base)); });
        }
        const TSNode parent = ts_node_parent(node);
        bool is_dataclass = false;
        if (type_of(parent) == "decorated_definition") {
            for_each_child(parent, [&](TSNode part) {
                is_dataclass =
                    is_dataclass || (type_of(part) == "decorator" && text(part).find("dataclass") != std::string::npos);
            });
        }
        if (is_dataclass) fields_[definition.name] = dataclass_fields(node);
        file_.definitions.push_back(std::move(definition));
    }

    std::vector<PythonOption> dataclass_fields(TSNode node) {
        std::vector<PythonOption> fields;
        for_each_child(field_of(node, "body"), [&](TSNode statement) {
            const TSNode assignment = ts_node_named_child(statement, 0);
            if (type_of(statement) != "expression_statement" || type_of(assignment) != "assignment") return;
            const TSNode type = field_of(assignment, "type");
            if (ts_node_is_null(type)) return;
            PythonOption option;
            option.source = OptionSource::dataclass;
            option.dest = text(field_of(assignment, "left"));
            option.type = text(type);
            option.line = line_of(assignment);
            option.path = file_.path;
            const TSNode value = field_of(assignment, "right");
            if (type_of(value) == "call") {
                const Call call = call_of(value, text_);
                if (const auto found = call.keywords.find("default"); found != call.keywords.end()) {
                    option.fallback = literal(found->second);
                }
                if (const auto found = call.keywords.find("metadata"); found != call.keywords.end()) {
                    option.help = metadata_help(found->second);
                }
            } else if (!ts_node_is_null(value)) {
                option.fallback = literal(value);
            }
            fields.push_back(std::move(option));
        });
        return fields;
    }

    std::string metadata_help(TSNode dictionary) const {
        std::string help;
        for_each_child(dictionary, [&](TSNode pair) {
            if (type_of(pair) == "pair" && words(field_of(pair, "key")) == "help")
                help = words(field_of(pair, "value"));
        });
        return help;
    }

    void visit_call(TSNode node) {
        const std::string function = text(field_of(node, "function"));
        const std::string name = last_part(function);
        if (name == "add_argument") {
            add_argument(node);
        } else if (name == "set_defaults") {
            for (const auto& [key, value] : call_of(node, text_).keywords) {
                for (PythonOption& option : file_.options) {
                    if (option.dest == key) option.fallback = literal(value);
                }
            }
        } else if (name == "option" &&
                   (function == "click.option" || function == "option" || function == "typer.option")) {
            click_option(node);
        } else if (name == "HfArgumentParser" || name == "TrlParser" || function == "tyro.cli" ||
                   name == "parse_args_into_dataclasses") {
            const std::string arguments = text(field_of(node, "arguments"));
            if (function == "tyro.cli") tyro_ = true;
            std::string word;
            for (const char c : arguments + " ") {
                if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
                    word.push_back(c);
                } else if (!word.empty()) {
                    parsed_classes_.push_back(std::exchange(word, {}));
                }
            }
        }
    }

    PythonOption common(const Call& call, TSNode node) const {
        PythonOption option;
        option.path = file_.path;
        option.line = line_of(node);
        for (const TSNode argument : call.positional) {
            const std::string flag = words(argument);
            if (flag.starts_with('-')) option.flags.push_back(flag);
        }
        const auto is_long = [](const std::string& flag) { return flag.starts_with("--"); };
        const auto first = std::find_if(option.flags.begin(), option.flags.end(), is_long);
        if (first != option.flags.end()) std::rotate(option.flags.begin(), first, first + 1);
        if (!option.flags.empty()) option.dest = snake(option.flags.front());
        const auto keyword = [&](const char* name) {
            const auto found = call.keywords.find(name);
            return found == call.keywords.end() ? TSNode{} : found->second;
        };
        if (const TSNode value = keyword("default"); !ts_node_is_null(value)) option.fallback = literal(value);
        if (const TSNode value = keyword("type"); !ts_node_is_null(value)) option.type = last_part(text(value));
        if (const TSNode value = keyword("help"); !ts_node_is_null(value)) option.help = words(value);
        if (const TSNode value = keyword("dest"); !ts_node_is_null(value)) option.dest = words(value);
        if (const TSNode value = keyword("choices"); !ts_node_is_null(value)) {
            for_each_child(value, [&](TSNode choice) {
                if (const auto item = literal(choice)) option.choices.push_back(*item);
            });
        }
        return option;
    }

    void add_argument(TSNode node) {
        const Call call = call_of(node, text_);
        PythonOption option = common(call, node);
        if (option.flags.empty()) return;
        const auto found = call.keywords.find("action");
        const std::string action = found == call.keywords.end() ? "" : text(found->second);
        if (action.find("BooleanOptionalAction") != std::string::npos) {
            option.form = FlagForm::negatable;
            option.type = "bool";
        } else if (action.find("store_true") != std::string::npos || action.find("store_false") != std::string::npos) {
            option.form = FlagForm::switch_;
            option.type = "bool";
            option.stores_false = action.find("store_false") != std::string::npos;
            // The switch itself is off unless it stands on the launch line.
            option.fallback = Value{false};
        } else if (action.find("version") != std::string::npos || action.find("help") != std::string::npos) {
            return;
        } else if (!call.keywords.contains("default")) {
            option.fallback = Value{};
        }
        file_.options.push_back(std::move(option));
    }

    void click_option(TSNode node) {
        const Call call = call_of(node, text_);
        PythonOption option = common(call, node);
        option.source = OptionSource::click;
        if (option.flags.empty()) return;
        std::string& first = option.flags.front();
        const auto is_flag = call.keywords.find("is_flag");
        if (const std::size_t slash = first.find('/'); slash != std::string::npos) {
            first = first.substr(0, slash);
            option.dest = snake(first);
            option.form = FlagForm::negatable;
        } else if (is_flag != call.keywords.end() && text(is_flag->second) == "True") {
            option.form = FlagForm::switch_;
            if (!option.fallback) option.fallback = Value{false};
        }
        file_.options.push_back(std::move(option));
    }

    void add_dataclass_options() {
        for (const auto& [name, fields] : fields_) {
            if (std::find(parsed_classes_.begin(), parsed_classes_.end(), name) == parsed_classes_.end()) continue;
            for (PythonOption option : fields) {
                const bool is_bool = option.type.find("bool") != std::string::npos;
                std::string flag = "--" + option.dest;
                if (tyro_) std::replace(flag.begin(), flag.end(), '_', '-');
                option.flags = {flag};
                if (is_bool && tyro_) option.form = FlagForm::negatable;
                file_.options.push_back(std::move(option));
            }
        }
    }

    void add_global_options() {
        if (configurator_line_ == 0) return;
        for (const auto& [name, place] : global_lines_) {
            if (name.starts_with('_') || is_null(place.second)) continue;
            PythonOption option;
            option.source = OptionSource::global;
            option.dest = name;
            option.flags = {"--" + name};
            option.form = FlagForm::equals;
            option.fallback = place.second;
            option.type = std::holds_alternative<bool>(place.second)           ? "bool"
                          : std::holds_alternative<std::int64_t>(place.second) ? "int"
                          : std::holds_alternative<double>(place.second)       ? "float"
                                                                               : "str";
            option.path = file_.path;
            option.line = place.first;
            file_.options.push_back(std::move(option));
        }
    }

    std::string_view text_;
    PythonFile file_;
    int configurator_line_ = 0;
    std::map<std::string, std::pair<int, Value>> global_lines_;
    std::map<std::string, std::vector<PythonOption>> fields_;
    std::vector<std::string> parsed_classes_;
    bool tyro_ = false;
};

}  // namespace

PythonFile read_python(std::string_view text, const std::string& path) {
    return Reader(text, path).run();
}

bool PythonClosure::imports(const std::string& module) const {
    return std::any_of(files.begin(), files.end(), [&](const PythonFile& file) {
        return std::find(file.modules.begin(), file.modules.end(), module) != file.modules.end();
    });
}

std::vector<PythonOption> PythonClosure::options() const {
    constexpr int kDeepest = 2;
    std::vector<PythonOption> result;
    for (const PythonFile& file : files) {
        if (file.depth > kDeepest) continue;
        for (const PythonOption& option : file.options) {
            const bool known = std::any_of(result.begin(), result.end(), [&](const PythonOption& other) {
                return other.flags.front() == option.flags.front();
            });
            if (!known) result.push_back(option);
        }
    }
    return result;
}

}  // namespace infrarsi
