// Forward: 2 b k n FLOPs, bytes that must move s (b k + k n + n + b n) for elements of s bytes; the
// bias is cuBLASLt's epilogue. Backward: 4 b k n FLOPs in two products, and the column sums of dy
// read it once more: s b n bytes. With n = 1 it is bound by memory and has kernels of its own: s b
// k bytes each pass.
#include "cuda/op/fully_connected.h"

#include "cuda/op/elementwise.h"
#include "cuda/op/gemm.h"
#include "cuda/op/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// y(r) = x(r) . weight + bias; a group of blockDim.x threads to a row.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    DotRowsKernel(const T* x, const T* weight, const T* bias, T* y, size_t b, size_t k) {
  const size_t r = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  float dot = 0.0f;
  if (r < b) {
#pragma unroll 4
    for (size_t c = threadIdx.x; c < k; c += blockDim.x) dot += x[r * k + c] * weight[c];
  }
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    dot += __shfl_xor_sync(kFullWarp, dot, static_cast<int>(offset));
  }
  if (threadIdx.x == 0 && r < b) y[r] = dot + (bias == nullptr ? 0.0f : float{bias[0]});
}

// out(c) = the sum over the rows of factor(r) * x(r, c); factor null: 1.
template <typename T>
void WeightedColumnSums(const char* op, const T* x, const T* factor, size_t b, size_t n,
                        float* scratch, float* out, Stream& stream) {
  ColumnSums<1>(op, b, n, scratch, stream, [=] __device__(size_t r, size_t c, float* sum) {
    sum[0] += factor == nullptr ? float{x[r * n + c]} : factor[r] * x[r * n + c];
  });
  AddBlocks(op, scratch, 1, CeilDivide(b, kRowsOfBlock), n, out, nullptr, stream);
}

template <typename T>
void AddBias(const T* bias, T* y, size_t b, size_t n, Stream& stream) {
  MapRows("FullyConnected: bias", b, n, Write::kAccumulate, y, n, stream,
          [=] __device__(size_t, size_t c) { return float{bias[c]}; });
}

template <typename T>
void OuterProduct(const T* dy, const T* weight, Write write, T* dx, size_t b, size_t k,
                  Stream& stream) {
  MapRows("FullyConnectedBackward: dx", b, k, write, dx, k, stream,
          [=] __device__(size_t r, size_t c) { return dy[r] * weight[c]; });
}

}  // namespace

void FullyConnected(ConstValues x, ConstValues weight, ConstValues bias, Values y, size_t b,
                    size_t k, size_t n, Stream& stream) {
  if (n == 1) {
    const dim3 block = RowBlock(k, kWarp);
    return ForType(x.type, [&]<typename T>() {
      Launch("FullyConnected", DotRowsKernel<T>,
             dim3(static_cast<unsigned>(CeilDivide(b, block.y))), block, 0, stream, As<T>(x),
             As<T>(weight), As<T>(bias), As<T>(y), b, k);
    });
  }
  const bool has_bias = bias.data != nullptr;
  if (has_bias && b > 0 && k > 0 && n > 0 && stream.status().ok()) {
    const absl::StatusOr<Blas*> blas = stream.queue()->blas();
    if (!blas.ok()) return stream.Record(blas.status());
    const absl::Status status = (*blas)->Multiply(
        {false, false, b, n, k, x, weight, false, bias, y, stream.product_precision()},
        stream.queue()->stream());
    if (status.ok()) return;
    if (!absl::IsUnimplemented(status)) return stream.Record(AddContext(status, "FullyConnected"));
  }
  op::Gemm(Transpose::kNo, Transpose::kNo, b, n, k, x, weight, Write::kOverwrite, y, stream);
  if (!has_bias) return;
  ForType(x.type, [&]<typename T>() { AddBias(As<T>(bias), As<T>(y), b, n, stream); });
}

void FullyConnectedBackward(ConstValues x, ConstValues weight, ConstValues dy, Write dx_write,
                            Values dx, float* dweight, float* dbias, size_t b, size_t k, size_t n,
                            float* scratch, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    const T* none = nullptr;
    if (dbias != nullptr) {
      WeightedColumnSums("FullyConnectedBackward: dbias", As<T>(dy), none, b, n, scratch, dbias,
                         stream);
    }
    if (n != 1) return;
    WeightedColumnSums("FullyConnectedBackward: dweight", As<T>(x), As<T>(dy), b, k, scratch,
                       dweight, stream);
    if (dx.data == nullptr) return;
    OuterProduct(As<T>(dy), As<T>(weight), dx_write, As<T>(dx), b, k, stream);
  });
  if (n == 1) return;
  op::Gemm(Transpose::kYes, Transpose::kNo, k, n, b, x, dy, Write::kOverwrite, dweight, stream);
  if (dx == nullptr) return;
  op::Gemm(Transpose::kNo, Transpose::kYes, b, k, n, dy, weight, dx_write, dx, stream);
}

}  // namespace cistern::op::gpu
