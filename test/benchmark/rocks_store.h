// RocksDB as a store of rows, to compare with tables beyond memory. Built where librocksdb-dev is
// installed; nothing but benchmarks uses it.
//
// Set up as the embedding stores that are built on it, with the same filters as Cistern's row
// files: 12 bits a key, indices and filters in memory, blocks of 4 KiB, direct reads and writes, no
// compression, checksums verified, the log synced once a pass.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "common/base/types.h"

namespace cistern {

// Ends the program at an error, as benchmarks do.
//
// Threads: one at a time.
class RocksStore {
 public:
  // Null where it is not built. folder: is created. floats: of a row. cache_bytes: of blocks, and
  // of rows that were not written to files yet. threads: that read, each with a part of the keys.
  static std::unique_ptr<RocksStore> Open(const std::string& folder, size_t floats,
                                          uint64_t cache_bytes, int threads);
  virtual ~RocksStore() = default;

  // keys: distinct, any order; they are read in the order of the files. values: [keys.size(),
  // floats]; an absent row is zero.
  virtual void Pull(absl::Span<const Key> keys, float* values) = 0;
  virtual void Push(absl::Span<const Key> keys, const float* values) = 0;
  // Makes what was pushed durable.
  virtual void Commit() = 0;
  // Waits for compactions, of all files into the last level.
  virtual void Compact() = 0;
  // Of logs, flushes and compactions.
  virtual uint64_t bytes_written() const = 0;
  // Of indices and filters.
  virtual uint64_t index_bytes() const = 0;
};

}  // namespace cistern
