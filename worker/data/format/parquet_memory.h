// Limits Arrow's memory for a Parquet file or Arrow stream. Include only where Arrow is available.
#pragma once

#include <arrow/memory_pool.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace cistern::data {

// A memory pool with a limit. Before Arrow reads a page, it allocates the size that the page header
// declares: three flipped bits in a file of 3 KB request 2 GB. This pool allocates at most what the
// file could need at once, and records the first refusal for the error message.
//
// A file needs at most one page and one dictionary of each column, uncompressed. gzip compresses at
// most 1032 to 1. zstd can do better (a column of one value), but pyarrow, parquet-mr and cuDF
// write pages of 1 MB by default. Hence the limit of 64 MiB plus 1024 times the file.
//
// Threads: all methods may be called from any thread.
class ParquetMemory : public arrow::MemoryPool {
 public:
  static constexpr int64_t kFreeBytes = int64_t{64} << 20;
  static constexpr int64_t kBytesPerFileByte = 1024;

  explicit ParquetMemory(int64_t file_bytes);

  int64_t limit() const { return limit_; }
  // The size of the first refused request; 0 if none was refused.
  int64_t refused() const { return refused_; }

  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  // OutOfMemory: `size` exceeds what the file could need, or what the system has.
  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override;
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                           uint8_t** bytes) override;
  void Free(uint8_t* bytes, int64_t size, int64_t alignment) override;
  void ReleaseUnused() override { under_.ReleaseUnused(); }

  int64_t bytes_allocated() const override { return held_; }
  int64_t max_memory() const override { return under_.max_memory(); }
  int64_t total_bytes_allocated() const override { return under_.total_bytes_allocated(); }
  int64_t num_allocations() const override { return under_.num_allocations(); }
  std::string backend_name() const override { return under_.backend_name(); }

 private:
  // Reserves `more` bytes; OutOfMemory, reserving nothing, if that exceeds the limit.
  arrow::Status Take(int64_t more);

  arrow::MemoryPool& under_;
  const int64_t limit_;
  std::atomic<int64_t> held_ = 0, refused_ = 0;
};

}  // namespace cistern::data
