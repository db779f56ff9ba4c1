#include "core/repo/syntax_tree.h"

namespace infrarsi {

SyntaxTree SyntaxTree::parse(const TSLanguage* language, std::string_view text) {
    struct FreeParser {
        void operator()(TSParser* parser) const { ts_parser_delete(parser); }
    };
    const std::unique_ptr<TSParser, FreeParser> parser(ts_parser_new());
    ts_parser_set_language(parser.get(), language);
    SyntaxTree tree;
    tree.tree_.reset(
        ts_parser_parse_string(parser.get(), nullptr, text.data(), static_cast<std::uint32_t>(text.size())));
    return tree;
}

void for_each_child(TSNode node, const std::function<void(TSNode)>& visit) {
    TSTreeCursor cursor = ts_tree_cursor_new(node);
    if (ts_tree_cursor_goto_first_child(&cursor)) {
        do {
            const TSNode child = ts_tree_cursor_current_node(&cursor);
            if (ts_node_is_named(child)) visit(child);
        } while (ts_tree_cursor_goto_next_sibling(&cursor));
    }
    ts_tree_cursor_delete(&cursor);
}

}  // namespace infrarsi
