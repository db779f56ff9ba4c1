#include "core/contract/constraint.h"

using namespace infrarsi;

namespace {

const Settings kSettings{
    {"micro", std::int64_t{2}},    {"accum", std::int64_t{8}}, {"compile", true}, {"off", false},
    {"mode", std::string("full")}, {"unset", Value{}},         {"ratio", 0.5},    {"digits", std::string("16")}};

Knob knob(const std::string& name, std::vector<Value> values, Value reference, const std::string& mechanism = "") {
    Knob result;
    result.name = name;
    result.spelling = "--" + name;
    result.values = std::move(values);
    result.reference = std::move(reference);
    result.mechanism = mechanism;
    return result;
}

std::vector<Value> ints(std::initializer_list<std::int64_t> numbers) {
    return {numbers.begin(), numbers.end()};
}

Value whole(std::int64_t number) {
    return number;
}

Contract batch_contract(Stack stack = Stack::hf) {
    Contract contract;
    contract.launch.stack = stack;
    contract.knobs = {knob("micro", ints({1, 2, 4, 8}), whole(2), "batch.micro_batch"),
                      knob("accum", ints({1, 4, 8}), whole(8), "grad_accum"),
                      knob("compile", {Value{false}, Value{true}}, Value{false})};
    return contract;
}

std::string reason(const Contract& contract, const Settings& changes) {
    const auto set = LegalSet::of(contract);
    REQUIRE(set);
    return set->why_illegal(contract.complete(changes)).value_or("");
}

}  // namespace

TEST_CASE("constraints say what they mean", "[contract]") {
    const std::vector<std::pair<std::string, bool>> cases{
        {"micro * accum == 16", true},
        {"micro*accum==16", true},
        {"micro + accum * 2 == 18", true},
        {"(micro + accum) * 2 == 20", true},
        {"accum - micro - 1 == 5", true},
        {"accum / micro == 4", true},
        {"accum % 3 == 2", true},
        {"-micro == -2", true},
        {"- -micro == 2", true},
        {"micro != 2", false},
        {"micro < 2", false},
        {"micro <= 2 && accum >= 8", true},
        {"micro > 5 || accum > 5", true},
        {"micro > 5 || accum > 5 && off", false},
        {"(micro > 5 || accum > 5) && compile", true},
        {"!(compile && mode == \"full\")", false},
        {"!off", true},
        {"compile", true},
        {"compile == true", true},
        {"off == false", true},
        {"mode == full", true},
        {"mode == 'full'", true},
        {"mode != none", true},
        {"full == mode", false},  // an unknown knob: see below
        {"\"full\" == mode", true},
        {"compile implies micro <= 2", true},
        {"compile implies micro > 2", false},
        {"off implies micro > 2", true},
        {"compile implies off implies micro > 2", true},
        {"(compile implies off) implies micro > 2", true},
        {"ratio == 0.5", true},
        {"ratio * 2 == 1", true},
        {"0.1 + 0.2 == 0.3", true},
        {"1e1 == 10", true},
        {"digits == 16", true},
        {"digits * 2 == 32", true},
        {"micro == accum", false},
        {"micro == micro", true},
        // Unset knobs bind nothing.
        {"unset == null", true},
        {"unset != null", false},
        {"unset > 4", true},
        {"unset < 4", true},
        {"unset * micro == 99", true},
        {"!(unset > 4)", true},
        {"unset > 4 && off", false},
        {"unset > 4 || off", true},
        {"unset > 4 implies off", true},
        {"unset == 4", false},
        {"-unset == 4", true},
        {"unset || compile", true},
        {"unset", false},
        {"!unset", true},
    };
    for (const auto& [text, expected] : cases) {
        CAPTURE(text);
        const auto constraint = Constraint::parse(text);
        REQUIRE(constraint);
        const auto holds = constraint->holds(kSettings);
        if (text == "full == mode") {
            REQUIRE_FALSE(holds);
            CHECK_THAT(holds.error().message(), Catch::Contains("there is no knob full"));
            continue;
        }
        REQUIRE(holds);
        CHECK(*holds == expected);
    }
}

TEST_CASE("constraints that make no sense say where", "[contract]") {
    struct Case {
        std::string text;
        int column;
        std::string says;
    };
    const std::vector<Case> unreadable{
        {"", 1, "ends where a value"},
        {"micro =", 7, "single ="},
        {"micro == ", 10, "ends where"},
        {"micro & accum", 7, "single &"},
        {"(micro", 7, ") is missing"},
        {"micro)", 6, "not expected"},
        {"micro accum", 7, "not expected"},
        {"a and b", 3, "write &&"},
        {"not a", 1, "write !"},
        {"'open", 1, "not closed"},
        {"1.2.3 == a", 1, "no number"},
        {"1 < a < 3", 7, "do not chain"},
        {"a $ b", 3, "means nothing"},
        {"a == == b", 6, "not expected"},
        {"4x == a", 1, "no number"},
        {std::string(500, '(') + "a", 102, "nests too deep"},
        {std::string(500, '!') + "a", 102, "nests too deep"},
        {std::string(5000, 'a'), 1, "too long"},
    };
    for (const Case& c : unreadable) {
        CAPTURE(c.text);
        const auto constraint = Constraint::parse(c.text);
        REQUIRE_FALSE(constraint);
        CHECK(constraint.error().kind() == ErrorKind::invalid_input);
        CHECK_THAT(constraint.error().message(), Catch::Contains(c.says));
        CHECK(constraint.error().place()->column == c.column);
    }
    const std::vector<Case> unjudgeable{{"micro == 1 || nobody > 2", 15, "no knob nobody"},
                                        {"mode > 3", 1, "no order"},
                                        {"micro + mode == 3", 9, "no order"},
                                        {"micro / off == 1", 7, "division by zero"},
                                        {"mode && compile", 1, "neither true nor false"}};
    for (const Case& c : unjudgeable) {
        CAPTURE(c.text);
        const auto constraint = Constraint::parse(c.text);
        REQUIRE(constraint);
        const auto holds = constraint->holds(kSettings);
        REQUIRE_FALSE(holds);
        CHECK_THAT(holds.error().message(), Catch::Contains(c.says));
        CHECK(holds.error().place()->column == c.column);
    }
}

TEST_CASE("a constraint knows whom it names", "[contract]") {
    const auto constraint = Constraint::parse("micro * accum == 16 && mode != none");
    REQUIRE(constraint);
    CHECK(constraint->names() == std::set<std::string>{"accum", "micro", "mode"});
    CHECK(constraint->column_of("accum") == 9);
    REQUIRE(constraint->words().size() == 1);
    CHECK(constraint->words()[0].word == "none");
    CHECK(constraint->words()[0].compared_with == "mode");
    CHECK(constraint->words()[0].column == 32);
}

TEST_CASE("sequences per update are conserved without being asked", "[contract]") {
    const Contract contract = batch_contract();
    const auto set = LegalSet::of(contract);
    REQUIRE(set);
    CHECK(set->batch_knobs() == std::vector<std::string>{"micro", "accum"});
    CHECK(set->batch_product() == 16);
    CHECK(reason(contract, {}).empty());
    CHECK(reason(contract, {{"micro", whole(4)}, {"accum", whole(4)}}).empty());
    CHECK(reason(contract, {{"micro", 4.0}, {"accum", whole(4)}, {"compile", true}}).empty());
    CHECK(
        reason(contract, {{"micro", whole(4)}}) ==
        "sequences per update must stay as they are: accum=8 micro=4 makes 32, the reference accum=8 micro=2 makes 16");
    CHECK_THAT(reason(contract, {{"micro", whole(3)}}), Catch::Contains("not among its values (1, 2, 4, 8)"));
    CHECK_THAT(reason(contract, {{"nobody", true}}), Catch::Contains("no knob nobody"));
    CHECK_THAT(set->why_illegal({{"micro", whole(2)}, {"compile", true}}).value_or(""),
               Catch::Contains("accum has no value"));
}

TEST_CASE("a batch knob alone moves only where accumulation follows", "[contract]") {
    const auto alone = [](Stack stack, const std::string& mechanism) {
        Contract contract;
        contract.launch.stack = stack;
        contract.knobs = {knob("k", ints({1, 2}), whole(1), mechanism)};
        return contract;
    };
    const Settings change{{"k", whole(2)}};
    for (const Stack stack : {Stack::auto_, Stack::torchtitan, Stack::deepspeed, Stack::hf, Stack::ddp}) {
        CAPTURE(to_string(stack));
        CHECK_THAT(reason(alone(stack, "micro_batch"), change),
                   Catch::Contains("k=2 changes the tokens per update (the reference is 1)"));
        CHECK_THAT(reason(alone(stack, "batch.grad_accum"), change), Catch::Contains("changes the tokens"));
        CHECK_THAT(reason(alone(stack, "parallel.tp"), change), Catch::Contains("changes the tokens"));
        CHECK(reason(alone(stack, "parallel.ep"), change).empty());
        CHECK(reason(alone(stack, ""), change).empty());
    }
    CHECK(reason(alone(Stack::megatron, "micro_batch"), change).empty());
    CHECK(reason(alone(Stack::megatron, "parallel.tp"), change).empty());
    CHECK_THAT(reason(alone(Stack::megatron, "batch.global_batch"), change), Catch::Contains("changes the tokens"));
    CHECK_THAT(reason(alone(Stack::megatron, "batch.seq_len"), change), Catch::Contains("changes the tokens"));
    const auto set = LegalSet::of(alone(Stack::hf, "micro_batch"));
    REQUIRE(set);
    CHECK(set->batch_knobs().empty());
    CHECK(set->batch_product() == 0);

    // A pinned global batch does for other stacks what Megatron does by itself.
    Contract pinned = alone(Stack::deepspeed, "micro_batch");
    pinned.knobs.push_back(knob("global", {Value{}, whole(64)}, whole(64), "batch.global_batch"));
    CHECK(reason(pinned, change).empty());
    pinned.knobs.back().reference = Value{};
    CHECK_THAT(reason(pinned, change), Catch::Contains("changes the tokens"));
}

TEST_CASE("parallel degrees divide the product where data parallelism shrinks", "[contract]") {
    Contract contract = batch_contract(Stack::hf);
    contract.knobs.push_back(knob("tp", ints({1, 2}), whole(1), "parallel.tp"));
    CHECK_FALSE(reason(contract, {{"tp", whole(2)}}).empty());
    CHECK(reason(contract, {{"tp", whole(2)}, {"micro", whole(4)}}).empty());
    Contract unset = batch_contract();
    unset.knobs[1] = knob("accum", {Value{}, whole(8)}, Value{}, "grad_accum");
    CHECK(reason(unset, {{"compile", true}}).empty());
    CHECK_THAT(reason(unset, {{"accum", whole(8)}}), Catch::Contains("not set to a number"));
}

TEST_CASE("written constraints join the legal set", "[contract]") {
    Contract contract = batch_contract();
    contract.constraints = {"compile implies micro < 8"};
    CHECK(reason(contract, {{"compile", true}}).empty());
    CHECK(reason(contract, {{"compile", true}, {"micro", whole(8)}, {"accum", whole(4)}}) != "");
    contract.knobs[1].values.push_back(whole(2));
    CHECK(reason(contract, {{"compile", true}, {"micro", whole(8)}, {"accum", whole(2)}}) ==
          "\"compile implies micro < 8\" does not hold at compile=true micro=8");
    contract.constraints = {"compile implies"};
    CHECK_FALSE(LegalSet::of(contract));
}

TEST_CASE("the other batch knob is moved to keep the product", "[contract]") {
    const Contract contract = batch_contract();
    const auto set = LegalSet::of(contract);
    REQUIRE(set);
    const auto repaired = [&](const Settings& changes, const std::string& held) {
        return set->conserve_batch(contract, changes, held);
    };
    CHECK(repaired({{"micro", whole(4)}}, "micro") == Settings{{"accum", whole(4)}, {"micro", whole(4)}});
    CHECK(repaired({{"accum", whole(4)}, {"compile", true}}, "accum") ==
          Settings{{"accum", whole(4)}, {"compile", true}, {"micro", whole(4)}});
    CHECK(repaired({{"micro", whole(2)}}, "micro") == Settings{});
    CHECK(repaired({{"micro", whole(4)}, {"accum", whole(4)}}, "micro") ==
          Settings{{"accum", whole(4)}, {"micro", whole(4)}});
    CHECK_FALSE(repaired({{"micro", whole(1)}}, "micro"));  // accum 16 is not legal
    CHECK(repaired({{"compile", true}}, "compile") == Settings{{"compile", true}});
}
