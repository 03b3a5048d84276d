// The build without CUDA or without NCCL.
#include "cuda/collective/communicator.h"

namespace cistern {

absl::Status Communicator::CheckGpuGroups() {
  return absl::UnimplementedError(
      "this build has no NCCL; install NCCL (nccl.h) next to the CUDA toolkit and rebuild");
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::OnGpu(
    std::unique_ptr<Communicator> peers, std::chrono::milliseconds deadline, Stream& stream) {
  return CheckGpuGroups();
}

}  // namespace cistern
