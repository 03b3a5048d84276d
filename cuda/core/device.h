// The GPUs of this machine, queried at run time.
//
// A machine without a GPU, without a driver, or with a driver that is too old is not an error: the
// query always succeeds and reports why there is no GPU. A build without CUDA does the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern {

struct GpuInfo {
  int index = 0;  // CUDA's ordinal, after CUDA_VISIBLE_DEVICES
  std::string name;
  uint64_t memory_bytes = 0;
  int compute_major = 0, compute_minor = 0;  // compute capability
  int multiprocessors = 0;
};

struct DeviceQuery {
  std::vector<GpuInfo> gpus;
  std::string reason;  // why `gpus` is empty; empty otherwise
  // Newest CUDA version that the driver supports, as 1000 * major + 10 * minor; 0: no driver.
  int driver_version = 0;
  int runtime_version = 0;  // CUDA runtime of this build, same encoding
};

// Threads: any.
DeviceQuery QueryGpus();

// Why this build cannot use the driver: there is no driver, or the driver supports only an older
// CUDA. Empty if the driver is usable. Versions as in DeviceQuery.
std::string DriverTrouble(int driver_version, int runtime_version);

// Whether this build has code for a GPU. kFailedPrecondition if the GPU's compute capability is
// below 8.0.
absl::Status CheckGpu(const GpuInfo& gpu);

// Human-readable text: one line per GPU, or "no GPU: <reason>".
std::string DescribeGpus(const DeviceQuery& query);

// One line: the toolkit, the architectures, and whether the build found cuBLAS and NCCL.
std::string DescribeCudaBuild();

// Runs a small kernel on a GPU and checks every element of its result. This tests the driver, this
// build's code for that architecture, and copies. kNotFound if there is no such GPU, kInternal with
// CUDA's error string if anything fails.
absl::Status TestGpu(int index);

}  // namespace cistern
