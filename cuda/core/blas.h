// Matrix products on a GPU with cuBLASLt. Float products run in strict float32, whatever the
// library's default, unless the stream allows less (ProductPrecision); 16-bit products accumulate
// in float32. Internal to the files that see CUDA.
//
// The library is loaded when the first Blas is created, not earlier (see CudaQueue::blas). Its
// heuristic chooses a kernel once per shape and the choice is cached. The choice depends only on
// the shape and on the alignment of the pointers, so the same calls give the same bits, as long as
// GPU, driver and library are the same.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "cuda/core/stream.h"
#include "cuda/core/values.h"

namespace cistern {

// Fused epilogues: work that a kernel does after the product, which saves trips through memory.
enum class BlasEpilogue {
  kNone,
  kBias,      // c = A B + bias
  kBiasRelu,  // c = max(A B + bias, 0)
};

// One product of row-major matrices: c = A B or c += A B, as op::Gemm. a and b have one type; c has
// that type or float. m, n, k > 0.
struct BlasProduct {
  bool transpose_a, transpose_b;
  size_t m, n, k;
  op::ConstValues a, b;
  bool accumulate;
  op::Values c;
  ProductPrecision precision;

  BlasEpilogue epilogue = BlasEpilogue::kNone;  // kNone if `accumulate` is set
  op::ConstValues bias = nullptr;               // [n] of c's type
};

// The largest power of two up to 16 that divides the address.
inline size_t AlignmentOf(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (size_t alignment = 16; alignment > 2; alignment /= 2) {
    if (address % alignment == 0) return alignment;
  }
  return 2;
}
// All that the choice of a kernel depends on, as text: products of the same name have the same one.
std::string NameOf(const BlasProduct& product);

// Threads: one at a time.
class Blas {
 public:
  // Loads the library and allocates its workspace, 32 MiB on the current device.
  static absl::StatusOr<std::unique_ptr<Blas>> Create();
  virtual ~Blas() = default;

  // Enqueues the product. kUnimplemented: the library has no kernel for the product or, with an
  // epilogue, its heuristic fails for any reason.
  virtual absl::Status Multiply(const BlasProduct& product, cudaStream_t stream) = 0;
  // The kernels chosen so far, by NameOf: text that is the same for the same kernel.
  virtual std::map<std::string, std::string> ChosenKernels() const = 0;
};

}  // namespace cistern
