// Forward: 2 b k n FLOPs, bytes that must move 4 (b k + k n + n + b n); the bias is cuBLASLt's
// epilogue. Backward: 4 b k n FLOPs in two products, and the column sums of dy read it once more:
// 4 b n bytes. With n = 1 it is bound by memory and has kernels of its own: 4 b k bytes each pass.
#include "cuda/op/fully_connected.h"

#include "cuda/op/elementwise.h"
#include "cuda/op/gemm.h"
#include "cuda/op/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// y(r) = x(r) . weight + bias; a group of blockDim.x threads to a row.
__global__ void __launch_bounds__(kBlockThreads)
    DotRowsKernel(const float* x, const float* weight, const float* bias, float* y, size_t b,
                  size_t k) {
  const size_t r = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  float dot = 0.0f;
  if (r < b) {
#pragma unroll 4
    for (size_t c = threadIdx.x; c < k; c += blockDim.x) dot += x[r * k + c] * weight[c];
  }
  for (unsigned offset = blockDim.x / 2; offset > 0; offset /= 2) {
    dot += __shfl_xor_sync(kFullWarp, dot, static_cast<int>(offset));
  }
  if (threadIdx.x == 0 && r < b) y[r] = dot + (bias == nullptr ? 0.0f : bias[0]);
}

// out(c) = the sum over the rows of factor(r) * x(r, c); factor null: 1.
void WeightedColumnSums(const char* op, const float* x, const float* factor, size_t b, size_t n,
                        float* scratch, float* out, Stream& stream) {
  ColumnSums<1>(op, b, n, scratch, stream, [=] __device__(size_t r, size_t c, float* sum) {
    sum[0] += factor == nullptr ? x[r * n + c] : factor[r] * x[r * n + c];
  });
  AddBlocks(op, scratch, 1, CeilDivide(b, kRowsOfBlock), n, out, nullptr, stream);
}

void AddBias(const float* bias, float* y, size_t b, size_t n, Stream& stream) {
  MapRows("FullyConnected: bias", b, n, Write::kAccumulate, y, n, stream,
          [=] __device__(size_t, size_t c) { return bias[c]; });
}

}  // namespace

void FullyConnected(const float* x, const float* weight, const float* bias, float* y, size_t b,
                    size_t k, size_t n, Stream& stream) {
  if (n == 1) {
    const dim3 block = RowBlock(k, kWarp);
    return Launch("FullyConnected", DotRowsKernel,
                  dim3(static_cast<unsigned>(CeilDivide(b, block.y))), block, 0, stream, x, weight,
                  bias, y, b, k);
  }
  if (bias != nullptr && b > 0 && k > 0 && n > 0 && stream.status().ok()) {
    const absl::StatusOr<Blas*> blas = stream.queue()->blas();
    if (!blas.ok()) return stream.Record(blas.status());
    const absl::Status status = (*blas)->Multiply(
        {false, false, b, n, k, x, weight, false, bias, y, stream.product_precision()},
        stream.queue()->stream());
    if (status.ok()) return;
    if (!absl::IsUnimplemented(status)) return stream.Record(AddContext(status, "FullyConnected"));
  }
  op::Gemm(Transpose::kNo, Transpose::kNo, b, n, k, x, weight, Write::kOverwrite, y, stream);
  if (bias != nullptr) AddBias(bias, y, b, n, stream);
}

void FullyConnectedBackward(const float* x, const float* weight, const float* dy, Write dx_write,
                            float* dx, float* dweight, float* dbias, size_t b, size_t k, size_t n,
                            float* scratch, Stream& stream) {
  if (dbias != nullptr) {
    WeightedColumnSums("FullyConnectedBackward: dbias", dy, nullptr, b, n, scratch, dbias, stream);
  }
  if (n == 1) {
    WeightedColumnSums("FullyConnectedBackward: dweight", x, dy, b, k, scratch, dweight, stream);
    if (dx == nullptr) return;
    return MapRows("FullyConnectedBackward: dx", b, k, dx_write, dx, k, stream,
                   [=] __device__(size_t r, size_t c) { return dy[r] * weight[c]; });
  }
  op::Gemm(Transpose::kYes, Transpose::kNo, k, n, b, x, dy, Write::kOverwrite, dweight, stream);
  if (dx == nullptr) return;
  op::Gemm(Transpose::kNo, Transpose::kYes, b, k, n, dy, weight, dx_write, dx, stream);
}

}  // namespace cistern::op::gpu
