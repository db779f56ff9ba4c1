#include "core/trial/python_syntax.h"

#include <tree_sitter/api.h>

#include <map>
#include <memory>
#include <vector>

extern "C" const TSLanguage* tree_sitter_python(void);

namespace infrarsi {

namespace {

void collect(TSNode node, std::string_view text, std::vector<SyntaxProblem>& problems) {
    if (ts_node_is_error(node) || ts_node_is_missing(node)) {
        const std::size_t begin = ts_node_start_byte(node);
        std::string_view content = text.substr(begin, ts_node_end_byte(node) - begin);
        content = content.substr(0, std::min<std::size_t>(content.find('\n'), 80));
        std::string shown =
            ts_node_is_missing(node) ? std::string("missing ") + ts_node_type(node) : std::string(content);
        problems.push_back({static_cast<int>(ts_node_start_point(node).row) + 1, std::move(shown)});
        return;
    }
    if (!ts_node_has_error(node)) return;
    TSTreeCursor cursor = ts_tree_cursor_new(node);
    if (ts_tree_cursor_goto_first_child(&cursor)) {
        do {
            collect(ts_tree_cursor_current_node(&cursor), text, problems);
        } while (ts_tree_cursor_goto_next_sibling(&cursor));
    }
    ts_tree_cursor_delete(&cursor);
}

std::vector<SyntaxProblem> problems_of(std::string_view text) {
    const std::unique_ptr<TSParser, decltype(&ts_parser_delete)> parser(ts_parser_new(), ts_parser_delete);
    ts_parser_set_language(parser.get(), tree_sitter_python());
    const std::unique_ptr<TSTree, decltype(&ts_tree_delete)> tree(
        ts_parser_parse_string(parser.get(), nullptr, text.data(), static_cast<std::uint32_t>(text.size())),
        ts_tree_delete);
    std::vector<SyntaxProblem> problems;
    if (tree) collect(ts_tree_root_node(tree.get()), text, problems);
    return problems;
}

}  // namespace

std::optional<SyntaxProblem> new_syntax_problem(std::string_view before, std::string_view after) {
    const auto now = problems_of(after);
    if (now.empty()) return std::nullopt;
    std::map<std::string, int> known;
    for (const SyntaxProblem& problem : problems_of(before)) ++known[problem.text];
    for (const SyntaxProblem& problem : now) {
        if (--known[problem.text] < 0) return problem;
    }
    return std::nullopt;
}

}  // namespace infrarsi
