// One shard of a sparse table on its server: the rows and the lock that guards them.
#pragma once

#include <memory>

#include "absl/synchronization/mutex.h"
#include "server/table/row_map.h"

namespace cistern {

// Threads: any thread. A caller takes the lock once for all rows that it has for this shard, and
// never while it holds the lock of another shard.
class Shard {
 public:
  // layout outlives this.
  explicit Shard(const ValueLayout* layout) : layout_(layout) { Clear(); }

  // Calls read(const RowMap&) under the reader lock.
  template <typename Read>
  auto WithRows(Read read) const {
    absl::ReaderMutexLock lock(&mutex_);
    return read(*rows_);
  }
  // Calls write(RowMap&) under the exclusive lock.
  template <typename Write>
  void Change(Write write) {
    absl::MutexLock lock(&mutex_);
    write(*rows_);
  }
  // Removes every row and frees its memory.
  void Clear() {
    auto none = std::make_unique<RowMap>(layout_);
    absl::MutexLock lock(&mutex_);
    rows_.swap(none);
  }

 private:
  const ValueLayout* const layout_;
  mutable absl::Mutex mutex_;
  std::unique_ptr<RowMap> rows_ ABSL_GUARDED_BY(mutex_) ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace cistern
