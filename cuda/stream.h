// Where ops run: a device and an order of execution on it.
//
// On the CPU an op runs before its call returns. On a GPU it is enqueued; errors of a launch stay
// in the stream and status() tells the first, so that ops themselves return nothing.
#pragma once

#include "common/status.h"

namespace cistern {

enum class DeviceKind { kCpu, kCuda };

// Threads: one at a time.
class Stream {
 public:
  explicit Stream(DeviceKind device = DeviceKind::kCpu) : device_(device) {}
  DeviceKind device() const { return device_; }
  const absl::Status& status() const { return status_; }
  void Record(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }

 private:
  DeviceKind device_;
  absl::Status status_;
};

}  // namespace cistern
