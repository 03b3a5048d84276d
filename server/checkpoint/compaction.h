// Merges the files from which shards are recovered into one new base. It reads files and writes a
// file: committed state is neither locked nor read.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/value/shard_map.h"
#include "server/checkpoint/row_file.h"

namespace cistern::server {

// The inputs and the identity of a merged file.
struct MergePlan {
  std::string folder, name;  // of the new file, and the folder of the old ones
  RowFileHeader header;      // base; commit: that of the newest row in the file
  ShardMap map;              // placement of the new file
  v1::Schema schema;
  std::vector<v1::RowFile> files;  // ascending commits; bases and deltas of any number of servers
  // Those of them that are open already, by name.
  std::map<std::string, std::shared_ptr<const RowFileReader>> open;
};

// Streams a merge of all sparse sections that server header.server of `map` owns, and the newest
// cells of its dense ranges. Every written row is checked against its file, and every shard against
// the digest that its newest file recorded.
//
// stop: polled during the merge; true ends the merge with kCancelled.
absl::StatusOr<v1::RowFile> MergeRowFiles(FileSystem& files, const MergePlan& plan,
                                          const std::function<bool()>& stop);

// Whether `file` holds rows of server `rank` of `map`.
bool HoldsRowsOf(const v1::RowFile& file, const ShardMap& map, uint32_t rank);

// Runs one merge at a time, on a thread of low priority.
//
// Threads: any thread.
class Compaction {
 public:
  Compaction() = default;
  ~Compaction();  // stops the merge

  // Starts a merge unless one runs or its result is pending. Returns whether it started.
  bool Start(FileSystem* files, MergePlan plan);
  // The finished base. Stays available until Drop.
  std::optional<v1::RowFile> result() const;
  // Discards the result, or the result to come of a running merge.
  void Drop();
  // The name of the file that is being made or is pending; empty if none.
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
  ThreadPool thread_{1};  // last: it uses the members above
};

}  // namespace cistern::server
