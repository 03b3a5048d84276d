// The dense tables of a model as of one step, for a thread that reads them while further steps run.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "cuda/core/device_context.h"
#include "cuda/core/event.h"
#include "worker/model/layer/parameters.h"

namespace cistern::model {

// Memory is allocated by the first Take, and used again by those that follow.
//
// Threads: Take from the thread of the device's stream; Read from any one thread, between two
// Takes.
class DenseSnapshot {
 public:
  // device: must outlive this object. kInternal: the device cannot be used.
  static absl::StatusOr<DenseSnapshot> Create(DeviceContext& device);

  // Copies the tables as the work enqueued on the device's stream so far leaves them; work that is
  // enqueued later does not change the copy. Does not wait. kResourceExhausted as MemoryPool::Take.
  absl::Status Take(const Parameters& parameters);

  // The number of tables in the last Take: 0, 1 or 2 (Parameters::tables).
  size_t tables() const { return tables_.size(); }
  // The values of table i: [rows, columns], until the next Take. Waits for the copy, not for steps
  // after it.
  absl::StatusOr<absl::Span<const float>> Read(size_t i);

 private:
  struct Table {
    Memory on_device, on_host;  // on_host: empty on the CPU, where on_device is read
    size_t values = 0;
  };
  DenseSnapshot(DeviceContext& device, Stream stream, Event copied)
      : device_(&device), stream_(std::move(stream)), copied_(std::move(copied)) {}

  DeviceContext* device_;
  std::vector<Table> tables_;
  Stream stream_;  // after tables_: it waits for its work before their memory goes back
  Event copied_;
};

}  // namespace cistern::model
