// With a CUDA toolkit that has no cuBLASLt.
#include "cuda/core/blas.h"

namespace cistern {

absl::StatusOr<std::unique_ptr<Blas>> Blas::Create() {
  return absl::UnimplementedError(
      "this build has no cuBLASLt, so no matrix product on a GPU; build with the whole toolkit");
}

}  // namespace cistern
