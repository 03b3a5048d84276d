// Keys in the memory of a GPU: those of a pass, which rows of a batch are found by.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "common/base/types.h"
#include "cuda/core/device_context.h"
#include "worker/data/source/key_collector.h"

namespace cistern {

// The distinct keys of one input of a pass with their index (cuda/op/key/key_index.h): built once,
// read-only.
//
// Threads: any, each with a stream of its own.
class DeviceKeys {
 public:
  // mixed: [count] mixed keys, ascending, none twice. On return the index is there.
  static absl::StatusOr<std::shared_ptr<const DeviceKeys>> Build(Memory mixed, size_t count,
                                                                 DeviceContext& device,
                                                                 Stream& stream);
  // rows[i] = the row of keys[i]; both in the device's memory, [count].
  void Find(const Key* keys, size_t count, Row* rows, Stream& stream) const;

 private:
  DeviceKeys(Memory mixed, size_t count) : mixed_(std::move(mixed)), count_(count) {}

  Memory mixed_, index_;
  size_t count_;
};

// Collectors that work on the GPU of `device`, on a stream of their own. For one worker alone
// batches keep their keys, and rows and segments are made when a batch comes to the device
// (BatchStage).
absl::StatusOr<std::unique_ptr<KeyCollector>> CollectKeysOn(DeviceContext& device, size_t inputs);
// For one of several workers (Pass::collected): a pass gets its rows when it ends, as the host has
// to tell the others of them; segments are still made where a batch comes.
absl::StatusOr<std::unique_ptr<KeyCollector>> CollectSharedKeysOn(DeviceContext& device,
                                                                  size_t inputs);

}  // namespace cistern
