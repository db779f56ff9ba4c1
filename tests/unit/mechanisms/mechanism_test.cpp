#include "core/mechanisms/mechanism.h"

#include <yaml-cpp/yaml.h>

using namespace infrarsi;

TEST_CASE("the compiled mechanisms are those of the YAML", "[mechanisms]") {
    const YAML::Node data = YAML::LoadFile(std::string(INFRARSI_SOURCE_DIR) + "/seeds/mechanisms/mechanisms.yaml");
    const MechanismTable table = shipped_mechanisms();
    const YAML::Node list = data["mechanisms"];
    REQUIRE(table.all().size() == list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Mechanism& item = table.all()[i];
        INFO(item.id);
        CHECK(item.id == list[i]["id"].as<std::string>());
        CHECK(to_string(item.kind) == list[i]["class"].as<std::string>());
        CHECK(to_string(item.memory) == list[i]["memory"].as<std::string>());
        CHECK(to_string(item.risk) == list[i]["contract_risk"].as<std::string>());
        CHECK(item.title == list[i]["title"].as<std::string>());
        CHECK(item.phases == list[i]["phases"].as<std::vector<std::string>>());
        CHECK(item.enters_global_batch == list[i]["enters_global_batch"].as<bool>());
        CHECK(item.aliases.size() == (list[i]["aliases"] ? list[i]["aliases"].size() : 0));
        CHECK(item.conflicts.size() == list[i]["conflicts"].size());
        CHECK(item.requirements.size() == list[i]["requires"].size());
        for (const auto& stack : list[i]["stacks"]) {
            const auto found = item.spellings.find(stack.first.as<std::string>());
            const std::size_t count = found == item.spellings.end() ? 0 : found->second.size();
            REQUIRE(count == stack.second["spellings"].size());
            for (std::size_t s = 0; s < count; ++s) {
                CHECK(found->second[s].name == stack.second["spellings"][s]["name"].as<std::string>());
                CHECK(found->second[s].kind == stack.second["spellings"][s]["kind"].as<std::string>());
            }
        }
    }
}

TEST_CASE("mechanisms are found by id, alias and spelling", "[mechanisms]") {
    const MechanismTable table = shipped_mechanisms();
    REQUIRE(table.find("micro_batch"));
    CHECK(table.find("micro_batch")->id == "batch.micro_batch");
    CHECK(table.find("batch.micro_batch")->short_name() == "micro_batch");
    CHECK(table.find("host.omp_threads")->short_name() == "host.omp_threads");
    CHECK(table.find("nothing") == nullptr);
    const auto spelled = table.spelled("megatron", "cli_flag", "--micro-batch-size");
    REQUIRE(spelled.size() == 1);
    CHECK(spelled[0]->memory == MemoryEffect::spender);
    CHECK(table.spelled("hf", "", "--micro-batch-size").empty());
    CHECK(table.spelled("", "env_var", "NCCL_ALGO").front()->id == "nccl.algo");
    CHECK(table.conflict("fp8", "precision.fp4", "megatron"));
    CHECK_FALSE(table.conflict("fp8", "precision.fp4", "hf"));
    CHECK_FALSE(MechanismTable::parse("{\"mechanisms\": [{}]}"));
}

TEST_CASE("ordinary names say what they do", "[mechanisms]") {
    CHECK(guess_mechanism("--micro-batch-size") == "batch.micro_batch");
    CHECK(guess_mechanism("--batch_size") == "batch.micro_batch");
    CHECK(guess_mechanism("--per_device_train_batch_size") == "batch.micro_batch");
    CHECK(guess_mechanism("--grad-accum") == "batch.grad_accum");
    CHECK(guess_mechanism("training.gradient_accumulation_steps") == "batch.grad_accum");
    CHECK(guess_mechanism("--activation-checkpointing") == "recompute.mode");
    CHECK(guess_mechanism("OMP_NUM_THREADS") == "host.omp_threads");
    for (const char* other :
         {"--lr", "--seed", "--layers", "--dim", "--steps", "--eval-batch-size", "--weight-decay"}) {
        CHECK_FALSE(guess_mechanism(other));
    }
    const MechanismTable table = shipped_mechanisms();
    for (const char* name : {"--mbs", "--accum", "compile_mode", "flash-attn", "tf32", "fused_adamw", "NCCL_PROTO"}) {
        INFO(name);
        REQUIRE(guess_mechanism(name));
        CHECK(table.find(*guess_mechanism(name)) != nullptr);
    }
}
