// Matrix products of the emulated GPU.
#include "cuda/blas.h"
#include "test/cuda/emulator/cuda_runtime.h"

namespace cistern {
namespace {

void MultiplyNow(const BlasProduct& p) {
  for (size_t i = 0; i < p.m; ++i) {
    for (size_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (size_t l = 0; l < p.k; ++l) {
        const double a = p.a[p.transpose_a ? l * p.m + i : i * p.k + l];
        sum += a * static_cast<double>(p.b[p.transpose_b ? j * p.k + l : l * p.n + j]);
      }
      if (p.bias != nullptr) sum += static_cast<double>(p.bias[j]);
      float& c = p.c[i * p.n + j];
      c = static_cast<float>(p.accumulate ? static_cast<double>(c) + sum : sum);
    }
  }
}

class LoopBlas : public Blas {
 public:
  absl::Status Multiply(const BlasProduct& product, cudaStream_t stream) override {
    emulator::Launch(stream, [product] { MultiplyNow(product); });
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Blas>> Blas::Create() {
  return std::unique_ptr<Blas>(new LoopBlas);
}

}  // namespace cistern
