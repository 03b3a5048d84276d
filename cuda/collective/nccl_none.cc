// In a build without CUDA or without NCCL.
#include "cuda/collective/communicator.h"

namespace cistern {

absl::Status Communicator::CheckGpuGroups() {
  return absl::UnimplementedError(
      "this build has no NCCL; build where nccl.h is found beside the CUDA toolkit");
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::OnGpu(
    std::unique_ptr<Communicator> peers, std::chrono::milliseconds deadline, Stream& stream) {
  return CheckGpuGroups();
}

}  // namespace cistern
