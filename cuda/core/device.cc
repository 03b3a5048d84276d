#include "cuda/core/device.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cistern {
namespace {

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

std::string DriverTrouble(int driver_version, int runtime_version) {
  if (driver_version == 0) return "this machine has no CUDA driver";
  if (driver_version >= runtime_version) return "";
  return absl::StrCat("the driver supports CUDA ", VersionText(driver_version),
                      " but this build needs ", VersionText(runtime_version),
                      ": update the driver");
}

absl::Status CheckGpu(const GpuInfo& gpu) {
  constexpr int kOldestMajor = 8;
  if (gpu.compute_major >= kOldestMajor) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "GPU ", gpu.index, " (", gpu.name, ") has compute capability ", gpu.compute_major, ".",
      gpu.compute_minor, "; the minimum is ", kOldestMajor, ".0 (A100 or newer)"));
}

std::string DescribeGpus(const DeviceQuery& query) {
  if (query.gpus.empty()) return absl::StrCat("no GPU: ", query.reason, "\n");
  std::string text;
  for (const GpuInfo& gpu : query.gpus) {
    absl::StrAppendFormat(&text,
                          "GPU %d: %s, %.1f GiB, compute capability %d.%d, %d multiprocessors\n",
                          gpu.index, gpu.name, static_cast<double>(gpu.memory_bytes) / (1 << 30),
                          gpu.compute_major, gpu.compute_minor, gpu.multiprocessors);
  }
  return text;
}

}  // namespace cistern
