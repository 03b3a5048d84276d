// The build whose CUDA toolkit has no cuBLASLt.
#include "cuda/core/blas.h"

namespace cistern {

absl::StatusOr<std::unique_ptr<Blas>> Blas::Create() {
  return absl::UnimplementedError(
      "this build has no cuBLASLt for matrix products on a GPU; build with the full CUDA toolkit");
}

}  // namespace cistern
