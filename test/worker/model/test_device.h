// The device that the tests of models compute on.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cuda/core/device_context.h"

namespace cistern {

// The device that CISTERN_TEST_DEVICE names: cpu (default) or cuda. Made once: what is on it is
// given back before the process ends, and a test leaves no error behind.
inline DeviceContext& TestDevice() {
  static DeviceContext* const device = [] {
    const char* name = std::getenv("CISTERN_TEST_DEVICE");
    const bool cuda = name != nullptr && std::string(name) == "cuda";
    return DeviceContext::Open(cuda ? DeviceKind::kCuda : DeviceKind::kCpu).value().release();
  }();
  return *device;
}

// An array of that device, where the test can read it.
template <typename T>
std::vector<T> Here(const T* there, size_t count) {
  std::vector<T> here(count);
  CopyToHost(there, here.data(), count * sizeof(T), TestDevice().stream());
  EXPECT_TRUE(TestDevice().stream().Wait().ok());
  return here;
}

}  // namespace cistern
