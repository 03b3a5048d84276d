// The GPUs of this machine, asked for at run time.
//
// A machine without a GPU, without a driver, or with one that is too old is an ordinary machine:
// the query never fails, it says why there is no GPU. Builds without CUDA answer the same way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern {

struct GpuInfo {
  int index = 0;  // as CUDA counts, CUDA_VISIBLE_DEVICES applied
  std::string name;
  uint64_t memory_bytes = 0;
  int compute_major = 0, compute_minor = 0;  // compute capability
  int multiprocessors = 0;
};

struct DeviceQuery {
  std::vector<GpuInfo> gpus;
  std::string reason;  // why gpus is empty; empty if it is not
  int driver_version =
      0;  // of CUDA that the driver supports, as 1000 * major + 10 * minor; 0: none
  int runtime_version = 0;  // of CUDA that this build carries, likewise
};

// Any thread.
DeviceQuery QueryGpus();

// What stands between a driver and this build: that there is none, or that it is of an older CUDA;
// empty where it is neither. Versions as in DeviceQuery.
std::string DriverTrouble(int driver_version, int runtime_version);

// Whether this build has code for a GPU. kFailedPrecondition: it is older than compute capability
// 8.0.
absl::Status CheckGpu(const GpuInfo& gpu);

// Lines for a person: one a GPU, or "no GPU: <reason>".
std::string DescribeGpus(const DeviceQuery& query);

// One line: the toolkit, the architectures, and which of cuBLAS and NCCL the build found.
std::string DescribeCudaBuild();

// Runs a small kernel on a GPU and checks every element that it wrote: the driver, this build's
// code for that architecture, and the copies work. kNotFound if there is no such GPU, kInternal
// with CUDA's words if something fails.
absl::Status TestGpu(int index);

}  // namespace cistern
