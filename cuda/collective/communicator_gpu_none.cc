// In a build without CUDA or without NCCL.
#include "cuda/collective/communicator.h"

namespace cistern {

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::OnGpu(PeerGroup group, Stream& stream) {
  return absl::UnimplementedError(
      "this build has no NCCL, so GPUs cannot compute together; build where nccl.h is found beside "
      "the CUDA toolkit");
}

}  // namespace cistern
