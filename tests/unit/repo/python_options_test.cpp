#include "core/repo/python_options.h"

#include "core/testing/temp_dir.h"

using namespace infrarsi;

namespace {

const PythonOption* find(const std::vector<PythonOption>& options, const std::string& flag) {
    for (const PythonOption& option : options) {
        if (option.flags.front() == flag) return &option;
    }
    return nullptr;
}

// flag, form, default and type in one line, for comparison.
std::string line(const std::vector<PythonOption>& options, const std::string& flag) {
    const PythonOption* option = find(options, flag);
    if (option == nullptr) return "<none>";
    return fmt::format("{} {} {} {}", option->dest, to_text(Value{static_cast<std::int64_t>(option->form)}),
                       option->fallback ? to_text(*option->fallback) : "?", option->type);
}

}  // namespace

TEST_CASE("argparse options are read with their defaults and forms", "[repo]") {
    const auto file = read_python(R"py(
import argparse
SIZE = 64
def parse():
    p = argparse.ArgumentParser()
    g = p.add_argument_group("x")
    g.add_argument("-b", "--micro-batch-size", type=int, default=4, help="sequences " "per pass")
    p.add_argument("--lr", type=float, default=-3e-4)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--no-flash", dest="flash", action="store_false")
    p.add_argument("--ckpt", action=argparse.BooleanOptionalAction, default=False)
    p.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--dim", type=int, default=SIZE * 2)
    p.add_argument("--path", default=os.environ.get("X"))
    p.add_argument("--nothing", type=int)
    p.add_argument("positional")
    p.set_defaults(lr=1e-2)
)py",
                                  "train.py");
    CHECK(line(file.options, "--micro-batch-size") == "micro_batch_size 0 4 int");
    CHECK(line(file.options, "--lr") == "lr 0 0.01 float");
    CHECK(line(file.options, "--compile") == "compile 2 false bool");
    CHECK(line(file.options, "--no-flash") == "flash 2 false bool");
    CHECK(find(file.options, "--no-flash")->stores_false);
    CHECK(line(file.options, "--ckpt") == "ckpt 3 false bool");
    CHECK(line(file.options, "--dim") == "dim 0 128 int");
    CHECK(line(file.options, "--path") == "path 0 ? ");
    CHECK(line(file.options, "--nothing") == "nothing 0 null int");
    REQUIRE(find(file.options, "--dtype"));
    CHECK(find(file.options, "--dtype")->choices.size() == 2);
    CHECK(find(file.options, "--micro-batch-size")->help == "sequences per pass");
    CHECK(find(file.options, "--micro-batch-size")->line == 7);
    CHECK(file.options.size() == 9);
}

TEST_CASE("click, dataclasses and module globals are options too", "[repo]") {
    const auto click = read_python(R"py(
@click.command()
@click.option("--batch-size", "-b", type=int, default=8)
@click.option("--compile/--no-compile", default=True)
@click.option("--fast", is_flag=True)
def main(batch_size, compile, fast): ...
)py",
                                   "a.py");
    CHECK(line(click.options, "--batch-size") == "batch_size 0 8 int");
    CHECK(line(click.options, "--compile") == "compile 3 true ");
    CHECK(line(click.options, "--fast") == "fast 2 false ");

    const auto hf = read_python(R"py(
@dataclass
class ModelArguments:
    gradient_checkpointing: bool = field(default=False, metadata={"help": "recompute"})
    workers: Optional[int] = 4
@dataclass
class NotParsed:
    hidden: int = 1
parser = HfArgumentParser((ModelArguments, TrainingArguments))
)py",
                                "b.py");
    CHECK(line(hf.options, "--gradient_checkpointing") == "gradient_checkpointing 0 false bool");
    CHECK(line(hf.options, "--workers") == "workers 0 4 Optional[int]");
    CHECK(find(hf.options, "--hidden") == nullptr);

    const auto nano = read_python(R"py(
batch_size = 12
gradient_accumulation_steps = 5 * 8
compile = True
_hidden = 1
name = str(1)
exec(open('configurator.py').read())
later = 3
)py",
                                  "c.py");
    CHECK(line(nano.options, "--batch_size") == "batch_size 1 12 int");
    CHECK(line(nano.options, "--gradient_accumulation_steps") == "gradient_accumulation_steps 1 40 int");
    CHECK(line(nano.options, "--compile") == "compile 1 true bool");
    CHECK(nano.options.size() == 3);
}

TEST_CASE("imports are followed within the project", "[repo]") {
    const TempDir dir(
        {{"train.py", "import torch\nfrom pkg.args import parse\nimport model\nimport train\n"},
         {"model.py", "from pkg import layers\n"},
         {"pkg/__init__.py", ""},
         {"pkg/args.py", "from .deep import more\np.add_argument('--x', default=1)\n"},
         {"pkg/deep.py", "from ..nowhere import y\np.add_argument('--x', default=2)\nimport pkg.deeper\n"},
         {"pkg/deeper.py", "p.add_argument('--too-far')\n"},
         {"pkg/layers.py", "class Attention(nn.Module): pass\n"}});
    const auto closure = read_python_closure(dir.path(), "train.py");
    REQUIRE(closure);
    std::vector<std::string> paths;
    for (const auto& file : closure->files) paths.push_back(file.path);
    CHECK(paths.front() == "train.py");
    CHECK(std::set<std::string>(paths.begin(), paths.end()) ==
          std::set<std::string>{"train.py", "model.py", "pkg/__init__.py", "pkg/args.py", "pkg/deep.py",
                                "pkg/deeper.py", "pkg/layers.py"});
    CHECK(closure->imports("torch"));
    const auto options = closure->options();
    REQUIRE(options.size() == 1);
    CHECK(options[0].path == "pkg/args.py");
    const auto missing = read_python_closure(dir.path(), "none.py");
    REQUIRE_FALSE(missing);
    CHECK(missing.error().message().find("--entry") != std::string::npos);
}

TEST_CASE("Python that cannot be parsed is read as far as possible", "[repo]") {
    const auto file = read_python("def f(:\n  p.add_argument('--a', default=1)\nclass )\n", "x.py");
    CHECK(find(file.options, "--a") != nullptr);
    std::string deep(20000, '(');
    CHECK_NOTHROW(read_python(deep, "y.py"));
    CHECK_NOTHROW(read_python("x = " + std::string(5000, '-') + "1", "z.py"));
}

TEST_CASE("the example declares what its command line offers", "[repo]") {
    const auto root = std::filesystem::path(INFRARSI_SOURCE_DIR);
    const auto tiny = read_python_closure(root / "examples/tinygpt", "train.py");
    REQUIRE(tiny);
    CHECK(tiny->files.size() == 5);
    CHECK(line(tiny->options(), "--activation-checkpointing") == "activation_checkpointing 3 false bool");
    const auto nano = read_python_closure(root / "tests/fixtures/nano_trainer", "train.py");
    REQUIRE(nano);
    CHECK(find(nano->options(), "--batch_size") != nullptr);
}
