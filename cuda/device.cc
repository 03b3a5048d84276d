#include "cuda/device.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cistern {

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
