// The newest manifest that a server has adopted, the files that it recovers from, and their upkeep:
// merging them into a new base, and removing those that no kept manifest names.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/checkpoint/compaction.h"
#include "server/checkpoint/state_folder.h"

namespace cistern::server {

// Threads: Take, KeepOlder and CollectGarbage one at a time; the rest at any time.
class StateChain {
 public:
  // Row files that are open already, by name.
  using OpenFiles = std::map<std::string, std::shared_ptr<const RowFileReader>>;

  struct Options {
    bool local = false;    // the folder is this server's alone
    bool indexed = false;  // merged files can be read row by row
    uint64_t cluster_id = 0;
    uint32_t keep_commits = 3;       // manifests that stay readable, and their files
    uint64_t compact_min_bytes = 0;  // deltas below this are never merged alone
    uint32_t compact_max_files = 0;  // more files than this are merged
  };
  // folder: outlives this. kDataLoss as StateFolder::NewestAttempt.
  static absl::StatusOr<std::unique_ptr<StateChain>> Open(StateFolder* folder,
                                                          const Options& options,
                                                          const ShardMap& map, uint32_t rank);

  ParsedManifest manifest() const;          // commit 0 before the first
  uint64_t commit() const;                  // its number
  std::vector<v1::RowFile> files() const;   // this server's, by commit
  uint64_t bytes() const;                   // of them
  std::vector<v1::RowFile> Merged() const;  // them, or a finished merged base and those after it

  // The files of any manifest that hold rows of this server, in commit order.
  std::vector<v1::RowFile> FilesOf(const v1::Manifest& manifest) const;
  // kDataLoss: the file cannot be trusted, or belongs to another cluster, model or shard_num.
  absl::StatusOr<std::unique_ptr<RowFileReader>> OpenFile(const v1::RowFile& file,
                                                          uint64_t schema_hash) const;

  // Adopts a manifest, and starts to merge its files if that is due.
  void Take(ParsedManifest manifest, const OpenFiles& open);
  // After a restart, before Take(manifest `newest`): reads the older manifests that stay readable,
  // so that their files are kept too.
  absl::Status KeepOlder(uint64_t newest);
  // Removes the files that no kept manifest names, except `prepared`.
  void CollectGarbage(const std::string& prepared);
  // Drops the merged base, which the files that follow may not fit.
  void DropMerged() { compaction_.Drop(); }
  void AwaitCompaction() { compaction_.AwaitIdle(); }

 private:
  StateChain(StateFolder* folder, const Options& options, const ShardMap& map, uint32_t rank,
             uint32_t merges)
      : folder_(folder), options_(options), map_(map), rank_(rank), merges_(merges) {}

  void StartCompactionIfDue(const OpenFiles& open);

  StateFolder* const folder_;
  const Options options_;
  const ShardMap map_;
  const uint32_t rank_;

  mutable absl::Mutex mutex_;
  ParsedManifest manifest_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::RowFile> files_ ABSL_GUARDED_BY(mutex_);
  std::vector<ParsedManifest> kept_ ABSL_GUARDED_BY(mutex_);  // newest last
  uint32_t merges_ ABSL_GUARDED_BY(mutex_);  // merges attempted, also by earlier processes
  Compaction compaction_;                    // last: its thread uses the folder
};

}  // namespace cistern::server
