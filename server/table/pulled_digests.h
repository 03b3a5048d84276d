// The hashes of rows of a shard that pulls have read from files.
//
// A commit takes the hash of each row that it replaces out of the shard's digest, and would have to
// read the row again. A pass is pulled at most one commit before its own, so the hashes are kept
// for that long.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/types.h"

namespace cistern::server {

// A row in a file and its hash (common/value/row_digest.h).
struct ColdDigest {
  Key key = 0;
  uint64_t digest = 0;
};

// Threads: any thread.
class PulledDigests {
 public:
  // Changes whenever the files of the shard do, or what they mean.
  uint64_t commits() const;

  // Adds rows that a pull has read from the files of commits(). If a commit has been since, which
  // may have written them, they are left out; so are some if there are too many.
  void Add(uint64_t commits, absl::Span<const ColdDigest> rows);

  // Ends the time of a commit: forgets the rows that it wrote, and those of the time before.
  void EndCommit(std::vector<Key> written);

  // Forgets all.
  void Clear();

  // Those of `keys` (ascending) that pulls have read since the last commit but one.
  std::vector<ColdDigest> Find(absl::Span<const Key> keys) const;

 private:
  mutable absl::Mutex mutex_;
  uint64_t commits_ ABSL_GUARDED_BY(mutex_) = 0;
  // Since the last commit, and in the time between the two before.
  std::vector<ColdDigest> now_ ABSL_GUARDED_BY(mutex_), before_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern::server
