// Matrix products on a GPU by cuBLASLt, of floats in strict float32 unless the stream allows less
// (ProductPrecision), whatever the library's default; of 16-bit elements with sums in float32.
// Internal to the files that see CUDA.
//
// The library is loaded when the first Blas is made and not before (see CudaQueue::blas). Which of
// its kernels makes a product is asked once a shape and kept: the answer depends on the shape and
// on the alignment of the pointers, so the same calls give the same bits.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "cuda/core/stream.h"
#include "cuda/core/values.h"

namespace cistern {

// What a kernel does beside a product, which saves trips through memory.
enum class BlasEpilogue {
  kNone,
  kBias,          // c = A B + bias
  kBiasRelu,      // c = max(A B + bias, 0), and mask, if there is one, says where that is not cut
  kReluBackward,  // c = A B where mask, which a kBiasRelu of c's shape has made, says; else 0
};

// One product of row-major matrices: c = A B or c += A B, as op::Gemm. a and b are of one type, c
// of that or float. m, n, k > 0.
struct BlasProduct {
  bool transpose_a, transpose_b;
  size_t m, n, k;
  op::ConstValues a, b;
  bool accumulate;
  op::Values c;
  ProductPrecision precision;

  BlasEpilogue epilogue = BlasEpilogue::kNone;  // another only without `accumulate`
  op::ConstValues bias = nullptr;               // [n] of c's type
  uint8_t* mask = nullptr;                      // [m, mask_stride], aligned to 16 bytes
  size_t mask_stride = 0;                       // bytes; a multiple of 16, at least n / 8
};

// Threads: one at a time.
class Blas {
 public:
  // Loads the library and takes its workspace, 32 MiB of the current device.
  static absl::StatusOr<std::unique_ptr<Blas>> Create();
  virtual ~Blas() = default;

  // Enqueues the product. kUnimplemented: the library has no kernel for it, or, with an epilogue,
  // finds none for whatever reason.
  virtual absl::Status Multiply(const BlasProduct& product, cudaStream_t stream) = 0;
};

}  // namespace cistern
