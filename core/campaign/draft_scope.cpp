#include "core/campaign/draft_scope.h"

#include "core/base/files.h"

namespace infrarsi {
namespace {

struct Judgement {
    enum class Kind { editable, frozen, outside };
    Kind kind = Kind::outside;
    std::string reason;
};

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

// "data_loader" → data, loader.
std::vector<std::string> words_of(const std::string& name) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : name + "_") {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
            word.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
        } else if (!word.empty()) {
            words.push_back(std::exchange(word, {}));
        }
    }
    return words;
}

struct Role {
    std::initializer_list<std::string_view> words;
    std::string_view reason;
};

const Role kRoles[] = {
    {{"data", "dataset", "datasets", "dataloader", "dataloaders", "loader", "loaders", "prepare", "preprocess",
      "corpus"},
     "decides which data the job sees, and in what order"},
    {{"tokenizer", "tokenizers", "tokenize", "vocab"}, "decides what a token is"},
    {{"eval", "evaluate", "evaluation", "evaluator", "metric", "metrics", "validation", "benchmark"},
     "judges the model; a change here would move the goal"},
    {{"loss", "losses", "criterion", "objective"},
     "is the loss that the job optimises and that candidates are compared by"},
    {{"timer", "timers", "timing", "profiler"}, "tells the time that candidates are compared by"},
    {{"test", "tests", "conftest"}, "tests the job"},
    {{"configurator"}, "reads the settings that trials change"},
};

std::optional<std::string> frozen_by_name(const std::string& path) {
    const std::filesystem::path file(path);
    const auto match = [](const std::string& name) -> std::optional<std::string> {
        for (const std::string& word : words_of(name)) {
            for (const Role& role : kRoles) {
                if (std::find(role.words.begin(), role.words.end(), word) != role.words.end())
                    return std::string(role.reason);
            }
        }
        return std::nullopt;
    };
    if (auto reason = match(file.stem().string())) return reason;
    for (const auto& part : file.parent_path()) {
        if (auto reason = match(part.string())) return reason;
    }
    return std::nullopt;
}

// What a definition is there for, when its name says so.
std::optional<std::string> frozen_by_definition(const PythonDefinition& item) {
    const std::string name = lower(item.name);
    if (item.is_class) {
        for (const std::string& base : item.bases) {
            const std::string kind = base.substr(base.rfind('.') == std::string::npos ? 0 : base.rfind('.') + 1);
            if (kind == "Dataset" || kind == "IterableDataset" || kind == "Sampler" || kind == "DataLoader") {
                return fmt::format("defines {}, which supplies the data", item.name);
            }
        }
        if (name.ends_with("dataset") || name.ends_with("dataloader") || name.ends_with("sampler")) {
            return fmt::format("defines {}, which supplies the data", item.name);
        }
        if (name.ends_with("loss")) return fmt::format("defines {}, the loss", item.name);
        if (name.ends_with("tokenizer")) return fmt::format("defines {}, which decides what a token is", item.name);
        return std::nullopt;
    }
    if (name == "get_batch" || name.starts_with("load_data") || name.starts_with("get_dataloader") ||
        name.starts_with("make_dataloader") || name.starts_with("build_dataloader")) {
        return fmt::format("defines {}(), which supplies the data", item.name);
    }
    if (name.starts_with("eval") || name == "validate" || name == "estimate_loss") {
        return fmt::format("defines {}(), which judges the model", item.name);
    }
    if (name.ends_with("_loss") || name == "loss" || name == "loss_fn" || name == "compute_loss") {
        return fmt::format("defines {}(), the loss", item.name);
    }
    return std::nullopt;
}

bool is_model(const PythonFile& file) {
    return std::any_of(file.definitions.begin(), file.definitions.end(), [](const PythonDefinition& item) {
        return item.is_class && !lower(item.name).ends_with("loss") &&
               std::any_of(item.bases.begin(), item.bases.end(), [](const std::string& base) {
                   return base == "nn.Module" || base == "torch.nn.Module" || base == "Module" ||
                          base.ends_with("PreTrainedModel") || base.ends_with("LightningModule");
               });
    });
}

Judgement judge(const PythonFile& file, const std::filesystem::path& root, std::vector<std::string>& warnings) {
    using Kind = Judgement::Kind;
    std::optional<std::string> content;
    for (const PythonDefinition& item : file.definitions) {
        if (content = frozen_by_definition(item); content) break;
    }
    if (file.depth == 0) {
        if (content) {
            warnings.push_back(
                fmt::format("{} is the entry and may be edited, but it also {}; move that to a file of its "
                            "own to have it frozen",
                            file.path, *content));
        }
        return {Kind::editable, "the training loop"};
    }
    const bool model = is_model(file);
    if (auto reason = frozen_by_name(file.path); reason && !(model && !content)) return {Kind::frozen, *reason};
    if (content && !model) return {Kind::frozen, *content};
    if (model) {
        if (content)
            warnings.push_back(fmt::format("{} is model code and may be edited, but it also {}", file.path, *content));
        return {Kind::editable, "model code"};
    }
    const auto text = read_file(root / file.path, 4u << 20);
    if (text) {
        for (const std::string_view sign :
             {".backward(", "optim.", "optimizer", "nn.functional", "scaled_dot_product", "triton"}) {
            if (text->find(sign) != std::string::npos) return {Kind::editable, "training code"};
        }
    }
    return {};
}

std::string escaped(const std::string& path) {
    std::string pattern;
    for (const char c : path) {
        if (std::string_view("*?[]{}\\").find(c) != std::string_view::npos) pattern.push_back('\\');
        pattern.push_back(c);
    }
    return pattern;
}

}  // namespace

void draft_scope(Draft& draft, const PythonClosure& closure, const std::vector<std::string>& project_files) {
    constexpr std::size_t kMostOthers = 60;
    Contract& contract = draft.contract;
    std::set<std::string> seen;
    const auto add = [&](const std::string& path, const Judgement& judgement) {
        if (judgement.kind == Judgement::Kind::outside) return;
        const std::string pattern = escaped(path);
        (judgement.kind == Judgement::Kind::editable ? contract.editable : contract.frozen).push_back(pattern);
        draft.comments.scope[pattern] = judgement.reason;
    };
    for (const PythonFile& file : closure.files) {
        seen.insert(file.path);
        if (file.bytes > 0) add(file.path, judge(file, contract.root, draft.warnings));
    }
    std::size_t others = 0;
    for (const std::string& path : project_files) {
        if (seen.contains(path) || !path.ends_with(".py")) continue;
        const auto reason = frozen_by_name(path);
        if (!reason) continue;
        if (++others > kMostOthers) {
            draft.warnings.push_back(
                fmt::format("more than {} further files look like data, evaluation or tests; add patterns for "
                            "them to scope.frozen",
                            kMostOthers));
            break;
        }
        add(path, {Judgement::Kind::frozen, *reason});
    }
}

}  // namespace infrarsi
