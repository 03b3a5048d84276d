// Writes samples to tar shards: closes a shard by samples or bytes, sorts samples by length into
// folders, keeps a manifest, and continues a set that a killed run left.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/data/format/shard_manifest.h"
#include "worker/data/format/tar_shard_writer.h"

namespace cistern::data {

// Samples of length [least, end) go to the folder "least_end".
struct LengthGroup {
  uint64_t least = 0, end = 0;
};
// Reads "10:500". kInvalidArgument: not that, or an empty range.
absl::StatusOr<LengthGroup> ParseLengthGroup(const std::string& text);

struct ShardSetOptions {
  std::string folder;                 // created if missing
  std::string name = "data";          // shards are NAME-00000.tar, NAME-00001.tar, ...
  uint64_t samples_per_shard = 2000;  // spec/004
  // A shard of several samples has at most this many bytes, its end included; 0: no limit.
  uint64_t bytes_per_shard = 0;
  std::vector<LengthGroup> groups;  // empty: all samples, no folders
  std::string plan;                 // everything that determines the samples
  bool overwrite = false;           // replaces an earlier set of this kind
};

// A set appears shard by shard. The manifest lists the complete ones; until Close it says that the
// set is not complete. The samples of a stopped run must be appended again from the start: those
// that complete shards hold are passed over, which is cheap, so equal input gives equal shards.
//
// Threads: one at a time.
class ShardSetWriter {
 public:
  // files: outlives this. kInvalidArgument: the folder holds something else, a complete set, or a
  // set of another plan (with the fix); another process writes there; groups overlap.
  static absl::StatusOr<std::unique_ptr<ShardSetWriter>> Create(FileSystem& files,
                                                                const ShardSetOptions& options);

  // Appends the sample `key`, of `length`, whose .json is `json`. Counts it as skipped if it is in
  // no length group.
  absl::Status Append(const std::string& key, uint64_t length, absl::string_view json);
  // Counts a sample that is not packed.
  void Skip(const std::string& cause, const std::string& message);

  // Closes the shards and writes manifest.json and file_list.txt.
  absl::Status Close();

  const ShardManifest& manifest() const { return manifest_; }
  uint64_t resumed_shards() const { return earlier_.size(); }

 private:
  // The open shard of a length group.
  struct Group {
    std::string folder;  // "" or "10_500/"
    LengthGroup lengths;
    uint64_t next = 0;  // number of the next shard
    std::string name;   // of the open shard; empty: none is open
    uint64_t samples = 0, bytes = 0;
    std::unique_ptr<TarShardWriter> writer;  // null while an earlier run's shard is passed over
  };

  ShardSetWriter(FileSystem& files, const ShardSetOptions& options);
  absl::Status Take();
  absl::Status RemoveEarlier(ShardManifest manifest);
  Group* GroupOf(uint64_t length);
  absl::Status OpenShard(Group* group);
  absl::Status CloseShard(Group* group);
  const ShardManifest::Shard* Earlier(const std::string& name) const;
  absl::Status SaveManifest();
  std::string Path(const std::string& name) const { return options_.folder + "/" + name; }

  FileSystem& files_;
  const ShardSetOptions options_;
  std::unique_ptr<FileLock> lock_;
  std::vector<Group> groups_;
  std::vector<ShardManifest::Shard> earlier_;  // complete shards of a stopped run
  ShardManifest manifest_;
  size_t saved_shards_ = 0;  // in the manifest on disk
};

}  // namespace cistern::data
