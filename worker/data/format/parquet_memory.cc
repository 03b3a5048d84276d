#include "worker/data/format/parquet_memory.h"

#include <arrow/status.h>

#include <algorithm>
#include <limits>

namespace cistern::data {
namespace {

int64_t LimitOf(int64_t file_bytes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  if (file_bytes > (kMost - ParquetMemory::kFreeBytes) / ParquetMemory::kBytesPerFileByte) {
    return kMost;
  }
  return ParquetMemory::kFreeBytes + ParquetMemory::kBytesPerFileByte * file_bytes;
}

}  // namespace

ParquetMemory::ParquetMemory(int64_t file_bytes)
    : under_(*arrow::default_memory_pool()), limit_(LimitOf(std::max<int64_t>(file_bytes, 0))) {}

arrow::Status ParquetMemory::Take(int64_t more) {
  const int64_t before = held_.fetch_add(more);
  if (more <= limit_ - before) return arrow::Status::OK();
  held_ -= more;
  int64_t none = 0;
  refused_.compare_exchange_strong(none, more);
  return arrow::Status::OutOfMemory("asked for ", more, " bytes with a limit of ", limit_);
}

arrow::Status ParquetMemory::Allocate(int64_t size, int64_t alignment, uint8_t** out) {
  ARROW_RETURN_NOT_OK(Take(size));
  const arrow::Status status = under_.Allocate(size, alignment, out);
  if (!status.ok()) held_ -= size;
  return status;
}

arrow::Status ParquetMemory::Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                                        uint8_t** bytes) {
  ARROW_RETURN_NOT_OK(Take(new_size - old_size));
  const arrow::Status status = under_.Reallocate(old_size, new_size, alignment, bytes);
  if (!status.ok()) held_ -= new_size - old_size;
  return status;
}

void ParquetMemory::Free(uint8_t* bytes, int64_t size, int64_t alignment) {
  under_.Free(bytes, size, alignment);
  held_ -= size;
}

}  // namespace cistern::data
