// manifest.json: what `cistern data pack` wrote to a folder of shards (docs/formats.md, "Shards").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern::data {

inline constexpr char kShardManifestName[] = "manifest.json";

struct ShardManifest {
  struct Shard {
    std::string name;  // path below the folder: "data-00000.tar", "10_500/data-00000.tar"
    uint64_t samples = 0, bytes = 0;
    std::string xxh3;  // of the whole file, 16 hexadecimal digits
    bool operator==(const Shard&) const = default;
  };
  struct Skipped {
    std::string cause;
    uint64_t samples = 0;
    std::string first;  // the message of the first one
    bool operator==(const Skipped&) const = default;
  };
  bool complete = true;  // false: packing was stopped; `cistern data pack` continues it
  std::string plan;      // what determines the shards: inputs and options
  std::vector<Shard> shards;
  std::vector<Skipped> skipped;

  uint64_t samples() const;
  std::string ToJson() const;
};

// kDataLoss: not such a file; kUnimplemented: written by a newer version.
absl::StatusOr<ShardManifest> ParseShardManifest(const std::string& text);
// The same from a file; kNotFound if there is none.
absl::StatusOr<ShardManifest> ReadShardManifest(const std::string& path);
// Atomically replaces the file.
absl::Status WriteShardManifest(FileSystem& files, const std::string& path,
                                const ShardManifest& manifest);

// Finds the manifests of shards, here or in an object store, and keeps them.
//
// Threads: one at a time.
class ShardManifests {
 public:
  // The number of samples of a shard, if a complete manifest in its folder or the one above lists
  // it with its current size.
  std::optional<uint64_t> SamplesOf(const std::string& shard);

 private:
  using Shards = std::map<std::string, ShardManifest::Shard>;
  const Shards& ShardsIn(const std::string& folder);

  std::map<std::string, Shards> folders_;
};

}  // namespace cistern::data
