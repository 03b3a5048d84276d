// The device on which the model tests run.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cuda/core/device_context.h"

namespace cistern::model {

// Returns the device named by CISTERN_TEST_DEVICE: cpu (default) or cuda. All tests share it. Each
// test must free its memory on the device and must leave no error there.
inline DeviceContext& TestDevice() {
  static DeviceContext* const device = [] {
    const char* name = std::getenv("CISTERN_TEST_DEVICE");
    const bool cuda = name != nullptr && std::string(name) == "cuda";
    return DeviceContext::Open(cuda ? DeviceKind::kCuda : DeviceKind::kCpu).value().release();
  }();
  return *device;
}

// Copies an array of the test device to the host.
template <typename T>
std::vector<T> Here(const T* there, size_t count) {
  std::vector<T> here(count);
  CopyToHost(there, here.data(), count * sizeof(T), TestDevice().stream());
  EXPECT_TRUE(TestDevice().stream().Wait().ok());
  return here;
}

}  // namespace cistern::model
