// Scratch with a size in bytes that detects writes past its end.
#pragma once

#include "test/cuda/op/op_test.h"

namespace cistern::op {

class ScratchGuard {
 public:
  explicit ScratchGuard(size_t bytes) : bytes_(bytes), held_(bytes + kBehind, kUntouched) {}

  void* data() { return held_.data(); }

  // Waits for the device.
  void ExpectNothingBehind() const {
    const std::vector<uint8_t>& held = held_.Read();
    EXPECT_EQ(std::count(held.end() - kBehind, held.end(), kUntouched), kBehind)
        << "an op wrote past the end of its " << bytes_ << " bytes of scratch";
  }

 private:
  static constexpr int kBehind = 512;
  static constexpr uint8_t kUntouched = 0xA5;
  const size_t bytes_;
  Array<uint8_t> held_;
};

}  // namespace cistern::op
