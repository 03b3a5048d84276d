// What Arrow may take for one Parquet file. Included where Arrow's headers are found.
#pragma once

#include <arrow/memory_pool.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace cistern {

// Arrow takes what the head of a page says that the page needs, before it reads the page: three
// flipped bits in a file of 3 KB ask for 2 GB. This pool hands out no more than the file could
// need at once, and remembers what it refused, so that the error can say it.
//
// What a file could need: a page and a dictionary of each column, unpacked. gzip packs at most
// 1032 to 1, and where zstd packs better (a column of one value) pages are those of pyarrow,
// parquet-mr and cuDF, 1 MB unless somebody asks for more. Hence 64 MiB and 1024 times the file.
//
// Threads: all methods may be called from any thread.
class ParquetMemory : public arrow::MemoryPool {
 public:
  static constexpr int64_t kFreeBytes = int64_t{64} << 20;
  static constexpr int64_t kBytesPerFileByte = 1024;

  explicit ParquetMemory(int64_t file_bytes);

  int64_t limit() const { return limit_; }
  // The size of the first request that was refused; 0: none was.
  int64_t refused() const { return refused_; }

  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  // OutOfMemory: `size` is more than the file could need, or than the system has.
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
  // Counts `more` bytes in; OutOfMemory, counting nothing, where that is too much.
  arrow::Status Take(int64_t more);

  arrow::MemoryPool& under_;
  const int64_t limit_;
  std::atomic<int64_t> held_ = 0, refused_ = 0;
};

}  // namespace cistern
