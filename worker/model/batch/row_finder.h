// Rows that a GPU finds and the host reads.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "worker/data/source/batch.h"

namespace cistern {

// Where several workers share the keys of a pass, the host tells the others which rows each batch
// takes (worker/pass/shared_pass.h), long before the batch comes to the device. It touches every
// distinct row of a batch once, and no occurrence.
//
// Threads: one at a time.
class RowFinder {
 public:
  // Both outlive it. Calls wait for the stream.
  RowFinder(DeviceContext& device, Stream& stream) : device_(device), stream_(stream) {}

  // The places of `wanted` in `keys`.
  absl::StatusOr<std::vector<Row>> Find(const DeviceKeys& keys, absl::Span<const Key> wanted);
  // segment_rows of a batch that has keys = their places in `keys`, ascending, each once;
  // rows = where in there each key of the batch is.
  absl::Status FindRows(const DeviceKeys& keys, SparseBatch* batch);

 private:
  // Rows of a part of them, which stay in rows_.
  absl::Status FindOnDevice(const DeviceKeys& keys, absl::Span<const Key> wanted);

  DeviceContext& device_;
  Stream& stream_;
  Memory keys_, rows_, distinct_rows_, distinct_, scratch_;
};

// Room in the device's memory for so many bytes, for what makes passes. What used it before must be
// over.
absl::Status MakeKeyRoom(size_t bytes, DeviceContext& device, Memory* memory);

}  // namespace cistern
