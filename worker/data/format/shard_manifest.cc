#include "worker/data/format/shard_manifest.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/io/file.h"
#include "common/io/new_file.h"
#include "worker/data/format/byte_stream.h"
#include "worker/data/storage/remote.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint64_t kFormat = 1;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

// Reads `name` of `json` into `value`; false if it is absent or of another type.
bool Take(const Json& json, const char* name, std::string* value) {
  const auto it = json.find(name);
  if (it == json.end() || !it->is_string()) return false;
  *value = it->get<std::string>();
  return true;
}

bool Take(const Json& json, const char* name, uint64_t* value) {
  const auto it = json.find(name);
  if (it == json.end() || !it->is_number_unsigned()) return false;
  *value = it->get<uint64_t>();
  return true;
}

absl::StatusOr<std::string> ReadAnyFile(const std::string& path) {
  if (!IsRemote(path)) return ReadFile(path, kMaxBytes);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, ByteStream::Open(path));
  CISTERN_RETURN_IF_ERROR(stream->Fill(kMaxBytes));
  return std::string(stream->data(), stream->available());
}

// The size of a file; none if it cannot be told.
std::optional<uint64_t> BytesOf(const std::string& path) {
  if (IsRemote(path)) {
    const absl::StatusOr<std::vector<RemoteEntry>> found = ListRemote(path);
    if (!found.ok() || found->size() != 1 || !found->front().name.empty()) return std::nullopt;
    return found->front().bytes;
  }
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  return error ? std::nullopt : std::optional(bytes);
}

bool TakeShard(const Json& json, ShardManifest::Shard* shard) {
  return json.is_object() && Take(json, "name", &shard->name) &&
         Take(json, "samples", &shard->samples) && Take(json, "bytes", &shard->bytes) &&
         Take(json, "xxh3", &shard->xxh3);
}

bool TakeSkipped(const Json& json, ShardManifest::Skipped* skipped) {
  return json.is_object() && Take(json, "cause", &skipped->cause) &&
         Take(json, "samples", &skipped->samples) && Take(json, "first", &skipped->first);
}

template <typename Item, typename TakeItem>
bool TakeAll(const Json& json, const char* name, const TakeItem& take, std::vector<Item>* items) {
  const auto it = json.find(name);
  if (it == json.end() || !it->is_array()) return false;
  for (const Json& one : *it) {
    if (!take(one, &items->emplace_back())) return false;
  }
  return true;
}

}  // namespace

uint64_t ShardManifest::samples() const {
  uint64_t all = 0;
  for (const Shard& shard : shards) all += shard.samples;
  return all;
}

std::string ShardManifest::ToJson() const {
  Json json;
  json["format"] = kFormat;
  json["complete"] = complete;
  json["plan"] = plan;
  json["samples"] = samples();
  json["shards"] = Json::array();
  for (const Shard& shard : shards) {
    json["shards"].push_back({{"name", shard.name},
                              {"samples", shard.samples},
                              {"bytes", shard.bytes},
                              {"xxh3", shard.xxh3}});
  }
  json["skipped"] = Json::array();
  for (const Skipped& one : skipped) {
    json["skipped"].push_back(
        {{"cause", one.cause}, {"samples", one.samples}, {"first", one.first}});
  }
  // A message may quote bytes that are not UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<ShardManifest> ParseShardManifest(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  uint64_t format = 0;
  if (!json.is_object() || !Take(json, "format", &format)) {
    return absl::DataLossError("not a manifest of shards");
  }
  if (format != kFormat) {
    return absl::UnimplementedError(
        absl::StrCat("the manifest has format ", format, "; this version reads ", kFormat,
                     ": use the version that packed the shards, or a newer one"));
  }
  ShardManifest manifest;
  const auto complete = json.find("complete");
  if (complete == json.end() || !complete->is_boolean() || !Take(json, "plan", &manifest.plan) ||
      !TakeAll(json, "shards", TakeShard, &manifest.shards) ||
      !TakeAll(json, "skipped", TakeSkipped, &manifest.skipped)) {
    return absl::DataLossError("a field of the manifest is missing or of another type");
  }
  manifest.complete = complete->get<bool>();
  return manifest;
}

absl::StatusOr<ShardManifest> ReadShardManifest(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadAnyFile(path));
  const absl::StatusOr<ShardManifest> manifest = ParseShardManifest(text);
  if (!manifest.ok()) return AddContext(manifest.status(), path);
  return manifest;
}

absl::Status WriteShardManifest(FileSystem& files, const std::string& path,
                                const ShardManifest& manifest) {
  return WriteWhole(files, path, manifest.ToJson());
}

std::optional<uint64_t> ShardManifests::SamplesOf(const std::string& shard) {
  const fs::path path(shard), folder = path.parent_path();
  const std::string name = path.filename().string();
  const std::string group = folder.filename().string();
  for (const auto& [place, listed] :
       {std::pair(folder.string(), name),
        std::pair(folder.parent_path().string(), group + "/" + name)}) {
    const Shards& shards = ShardsIn(place);
    const auto it = shards.find(listed);
    if (it != shards.end() && BytesOf(shard) == it->second.bytes) return it->second.samples;
  }
  return std::nullopt;
}

const ShardManifests::Shards& ShardManifests::ShardsIn(const std::string& folder) {
  const auto [it, is_new] = folders_.try_emplace(folder);
  if (!is_new) return it->second;
  const std::string path = (fs::path(folder) / kShardManifestName).string();
  const absl::StatusOr<ShardManifest> manifest = ReadShardManifest(path);
  if (!manifest.ok() || !manifest->complete) return it->second;
  for (const ShardManifest::Shard& shard : manifest->shards) it->second[shard.name] = shard;
  return it->second;
}

}  // namespace cistern::data
