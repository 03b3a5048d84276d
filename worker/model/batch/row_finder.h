// Finds rows on the GPU for use on the host.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "worker/data/source/batch.h"

namespace cistern::model {

// With several workers, the host announces the rows of each batch to their owners
// (worker/pass/shared_pass.h) long before the batch is copied to the device. With a RowFinder the
// host handles each distinct row of a batch once, and no occurrences.
//
// Threads: one at a time.
class RowFinder {
 public:
  // Both must outlive the finder. Calls wait for the stream.
  RowFinder(DeviceContext& device, Stream& stream) : device_(device), stream_(stream) {}

  // Returns the row of each key of `wanted` in `keys`.
  absl::StatusOr<std::vector<Row>> Find(const DeviceKeys& keys, absl::Span<const Key> wanted);
  // Sets batch->segment_rows to the distinct rows of batch->keys, ascending, and batch->rows to the
  // index of each key's row in segment_rows.
  absl::Status FindRows(const DeviceKeys& keys, data::HostSparseBatch* batch);

 private:
  // Finds the rows of `wanted` into rows_ on the device.
  absl::Status FindOnDevice(const DeviceKeys& keys, absl::Span<const Key> wanted);

  DeviceContext& device_;
  Stream& stream_;
  Memory keys_, rows_, distinct_rows_, distinct_, scratch_;
};

// Grows *memory to at least `bytes` of device memory. Its previous contents must not be in use.
absl::Status MakeKeyRoom(size_t bytes, DeviceContext& device, Memory* memory);

}  // namespace cistern::model
