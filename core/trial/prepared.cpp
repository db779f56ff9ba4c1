#include "core/trial/prepared.h"

#include <nlohmann/json.hpp>

#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/base/json.h"

namespace infrarsi {

namespace {

using nlohmann::json;

json to_json(const FrozenState& frozen) {
    json object = json::object();
    for (const auto& [path, stamp] : frozen) {
        object[path] = {{"digest", stamp.digest}, {"device", stamp.device},           {"inode", stamp.inode},
                        {"size", stamp.size},     {"modified_ns", stamp.modified_ns}, {"changed_ns", stamp.changed_ns}};
    }
    return object;
}

FrozenState frozen_from_json(const json& object) {
    FrozenState frozen;
    for (const auto& [path, item] : object.items()) {
        FileStamp& stamp = frozen[path];
        item.at("digest").get_to(stamp.digest);
        item.at("device").get_to(stamp.device);
        item.at("inode").get_to(stamp.inode);
        item.at("size").get_to(stamp.size);
        item.at("modified_ns").get_to(stamp.modified_ns);
        item.at("changed_ns").get_to(stamp.changed_ns);
    }
    return frozen;
}

}  // namespace

Expected<void> write_prepared(const PreparedTrial& prepared, const std::filesystem::path& file, std::string_view key) {
    const SandboxPlan& box = prepared.sandbox;
    const json body = {{"signature", prepared.signature},
                       {"role", prepared.role},
                       {"tree_digest", prepared.tree_digest},
                       {"frozen", to_json(prepared.frozen)},
                       {"env", prepared.env},
                       {"command", prepared.command},
                       {"temp_dir", prepared.temp_dir},
                       {"sandbox",
                        {{"kind", box.kind},
                         {"network", box.network},
                         {"why", box.why},
                         {"writable", box.writable},
                         {"readonly", box.readonly},
                         {"hidden", box.hidden}}}};
    // Only text that went through JSON once can be signed: names that are not UTF-8 change on the way.
    const std::string text = canonical_json(body);
    return write_file(file, canonical_json({{"prepared", json::parse(text)}, {"mac", hmac_sha256_hex(key, text)}}),
                      0600);
}

Expected<PreparedTrial> read_prepared(const std::filesystem::path& file, std::string_view key) {
    INFRARSI_ASSIGN(const std::string text, read_file(file));
    const auto broken = [&](std::string_view why) {
        return fail_at(ErrorKind::corrupt, {file.string()},
                       "what was prepared for this trial does not verify ({}); remove its folder to run it again", why);
    };
    try {
        const json whole = json::parse(text);
        const json& body = whole.at("prepared");
        if (!digests_equal(hmac_sha256_hex(key, canonical_json(body)), whole.at("mac").get<std::string>())) {
            return broken("it was changed, or another user made it");
        }
        PreparedTrial prepared;
        body.at("signature").get_to(prepared.signature);
        body.at("role").get_to(prepared.role);
        body.at("tree_digest").get_to(prepared.tree_digest);
        prepared.frozen = frozen_from_json(body.at("frozen"));
        body.at("env").get_to(prepared.env);
        body.at("command").get_to(prepared.command);
        body.at("temp_dir").get_to(prepared.temp_dir);
        const json& box = body.at("sandbox");
        box.at("kind").get_to(prepared.sandbox.kind);
        box.at("network").get_to(prepared.sandbox.network);
        box.at("why").get_to(prepared.sandbox.why);
        box.at("writable").get_to(prepared.sandbox.writable);
        box.at("readonly").get_to(prepared.sandbox.readonly);
        box.at("hidden").get_to(prepared.sandbox.hidden);
        return prepared;
    } catch (const json::exception& error) {
        return broken(error.what());
    }
}

}  // namespace infrarsi
