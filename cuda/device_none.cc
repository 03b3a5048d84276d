// The build without a CUDA toolkit.
#include "cuda/device.h"

namespace cistern {

DeviceQuery QueryGpus() {
  DeviceQuery query;
  query.reason = "this build has no CUDA";
  return query;
}

std::string DescribeCudaBuild() {
  return "no CUDA";
}

absl::Status TestGpu(int index) {
  return absl::NotFoundError(absl::StrCat("GPU ", index, ": this build has no CUDA"));
}

}  // namespace cistern
