// Merges the files that shards are recovered from into one new base: from files to files, so that
// committed state is neither locked nor looked at.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/value/shard_map.h"
#include "server/checkpoint/row_file.h"

namespace cistern {

// What a merged file is to be.
struct MergePlan {
  std::string folder, name;  // of the new file, and the folder of the old ones
  RowFileHeader header;      // base, commit: of the newest row in it
  ShardMap map;              // placement of the new file
  v1::Schema schema;
  std::vector<v1::RowFile> files;  // ascending commits; bases and deltas of any number of servers
};

// Streams a merge of all sparse sections that server header.server of `map` owns, and the newest
// cells of its dense ranges. Every row that is written was checked against its file, and every
// shard against the digest that its newest file recorded.
//
// stop: asked now and then; true ends the merge with kCancelled.
absl::StatusOr<v1::RowFile> MergeRowFiles(FileSystem& files, const MergePlan& plan,
                                          const std::function<bool()>& stop);

// Whether the rows of `file` include some of server `rank` of `map`.
bool HoldsRowsOf(const v1::RowFile& file, const ShardMap& map, uint32_t rank);

// One merge at a time, on a thread of its own that yields to all others.
//
// Threads: any thread.
class Compaction {
 public:
  Compaction() = default;
  ~Compaction();  // stops the merge

  // Starts unless one runs or its result waits. Returns whether it started.
  bool Start(FileSystem* files, MergePlan plan);
  // The finished base, which stays the answer until Drop.
  std::optional<v1::RowFile> result() const;
  // Forgets the result, or what will be it.
  void Drop();
  // Of the file that is being made or waits; empty: none.
  std::string file_name() const;
  void AwaitIdle() const;

 private:
  void Run(FileSystem* files, const MergePlan& plan);

  mutable absl::Mutex mutex_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;
  std::string name_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::RowFile> result_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  ThreadPool thread_{1};  // last: it uses all of the above
};

}  // namespace cistern
