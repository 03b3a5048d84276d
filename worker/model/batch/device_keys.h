// The keys of a pass in GPU memory, with which the GPU finds the rows of a batch.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "common/base/types.h"
#include "cuda/core/device_context.h"
#include "worker/data/source/key_collector.h"

namespace cistern::model {

// The distinct keys of one input of a pass and their index (cuda/op/key/key_index.h). Immutable
// after Build.
//
// Threads: any, each with its own stream.
class DeviceKeys {
 public:
  // Builds the index, and waits for it.
  //
  // mixed: [count] mixed keys, ascending, distinct.
  static absl::StatusOr<std::shared_ptr<const DeviceKeys>> Build(Memory mixed, size_t count,
                                                                 DeviceContext& device,
                                                                 Stream& stream);
  // rows[i] = the row of keys[i]. keys, rows: [count], in device memory.
  void Find(const Key* keys, size_t count, Row* rows, Stream& stream) const;

 private:
  DeviceKeys(Memory mixed, size_t count) : mixed_(std::move(mixed)), count_(count) {}

  Memory mixed_, index_;
  size_t count_;
};

// Creates a collector for a single worker that runs on the GPU of `device`, on its own stream.
// Batches keep their keys; BatchStage computes rows and segments when it copies a batch to the
// device.
absl::StatusOr<std::unique_ptr<data::KeyCollector>> CollectKeysOn(DeviceContext& device,
                                                                  size_t inputs);
// Creates a collector for one of several workers (Pass::collected). Rows are computed at the end of
// the pass, because the host sends them to the other workers; BatchStage still makes the segments.
absl::StatusOr<std::unique_ptr<data::KeyCollector>> CollectSharedKeysOn(DeviceContext& device,
                                                                        size_t inputs);

}  // namespace cistern::model
