// The initializer of a table in the form in which ops on a device read it.
#pragma once

#include "common/value/first_weights.h"
#include "cuda/core/memory.h"
#include "proto/schema.pb.h"
#include "worker/model/layer/device_buffer.h"

namespace cistern::model {

// Threads: one at a time.
class DeviceFirstWeights {
 public:
  // Copies the slot sizes of the initializer, if it has any, to the device. spec must outlive this.
  absl::Status Bring(const v1::TableSpec& spec, DeviceContext& device) {
    weights_ = MakeFirstWeights(spec.initializer(), spec.seed());
    const size_t count = weights_.slot_num;
    if (count == 0) return absl::OkStatus();
    CISTERN_RETURN_IF_ERROR(slot_sizes_.Grow(count, device, "slot sizes"));
    CopyToDevice(weights_.slot_sizes, slot_sizes_.data(), count * sizeof(uint64_t),
                 device.stream());
    weights_.slot_sizes = slot_sizes_.data();
    return device.stream().Wait();
  }

  const FirstWeights& weights() const { return weights_; }

 private:
  FirstWeights weights_;
  DeviceBuffer<uint64_t> slot_sizes_;
};

}  // namespace cistern::model
