// Matrix products of the emulated GPU.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cuda/core/blas.h"
#include "cuda/op/primitive/element.h"
#include "test/cuda/emulator/cuda_runtime.h"

namespace cistern {
namespace {

// Rounds to the nearest number of that precision.
double Rounded(float x, ProductPrecision precision) {
  const int dropped = precision == ProductPrecision::kFloat32 ? 0
                      : precision == ProductPrecision::kTf32  ? 13
                                                              : 16;
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  bits += (1u << dropped) / 2;
  bits &= ~((1u << dropped) - 1);
  std::memcpy(&x, &bits, sizeof(bits));
  return static_cast<double>(x);
}

// Elements of a and b have type T, those of c type C.
template <typename T, typename C>
void MultiplyNow(const BlasProduct& p) {
  const auto *left = static_cast<const T*>(p.a.data), *right = static_cast<const T*>(p.b.data);
  const auto* bias = static_cast<const C*>(p.bias.data);
  auto* out = static_cast<C*>(p.c.data);
  for (size_t i = 0; i < p.m; ++i) {
    for (size_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (size_t l = 0; l < p.k; ++l) {
        const float a = left[p.transpose_a ? l * p.m + i : i * p.k + l];
        const float b = right[p.transpose_b ? j * p.k + l : l * p.n + j];
        sum += Rounded(a, p.precision) * Rounded(b, p.precision);
      }
      if (bias != nullptr) sum += double{bias[j]};
      if (p.epilogue == BlasEpilogue::kBiasRelu) sum = sum > 0 ? sum : 0;
      C& c = out[i * p.n + j];
      c = static_cast<float>(p.accumulate ? double{c} + sum : sum);
    }
  }
}

// Lacks kernels for some shapes, as cuBLASLt may, so that the fallbacks run too.
bool HasKernel(const BlasProduct& p) {
  return p.epilogue == BlasEpilogue::kNone || p.n % 5 != 0;
}

// CISTERN_EMULATED_PRODUCTS: what the kernels of this library are called.
class LoopBlas : public Blas {
 public:
  absl::Status Multiply(const BlasProduct& product, cudaStream_t stream) override {
    if (!HasKernel(product)) return absl::UnimplementedError("no kernel for this product");
    const char* kernel = std::getenv("CISTERN_EMULATED_PRODUCTS");
    kernels_[NameOf(product)] = kernel == nullptr ? "loop" : kernel;
    op::ForType(product.a.type, [&]<typename T>() {
      const bool floats = product.c.type == ElementType::kFloat;
      emulator::Launch(stream,
                       [product, multiply = floats ? MultiplyNow<T, float> : MultiplyNow<T, T>] {
                         multiply(product);
                       });
    });
    return absl::OkStatus();
  }
  std::map<std::string, std::string> ChosenKernels() const override { return kernels_; }

 private:
  std::map<std::string, std::string> kernels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Blas>> Blas::Create() {
  return std::unique_ptr<Blas>(new LoopBlas);
}

}  // namespace cistern
