// Memory traffic per element of x of s bytes: statistics s (the second read of a block of 64 rows
// hits the cache), forward 2 s, backward 3 s for the gradients of the parameters (2 s without an
// epilogue) and 4 s for dx (3 s without; s more where it accumulates), inference 2 s. At most 8
// FLOPs.
#include "cuda/op/dense/batch_norm.h"

#include "common/base/check.h"
#include "cuda/op/dense/dropout_draw.cuh"
#include "cuda/op/primitive/map_packs.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// The formula of every forward pass, so that all have the same bits, with and without an epilogue.
__device__ inline float Normalized(float x, float mean, float inv_std, float gamma, float beta) {
  return (x - mean) * inv_std * gamma + beta;
}

// Mean and centered sum of squares of each column of a block of kRowsOfBlock rows. The block is
// read twice: centered sums avoid cancellation. means, m2s: [blocks, n].
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    BlockMomentsKernel(const T* x, size_t b, size_t n, float* means, float* m2s) {
  const size_t begin = size_t{blockIdx.x} * kRowsOfBlock;
  const size_t end = begin + kRowsOfBlock < b ? begin + kRowsOfBlock : b;
  const size_t c = size_t{blockIdx.y} * blockDim.x + threadIdx.x;
  __shared__ float mean_of[kBlockThreads];  // [blockDim.x]
  float sum[1] = {};
  if (c < n) {
#pragma unroll 8
    for (size_t r = begin + threadIdx.y; r < end; r += blockDim.y) sum[0] += x[r * n + c];
  }
  AddOverRows(sum);
  if (threadIdx.y == 0) mean_of[threadIdx.x] = sum[0] / static_cast<float>(end - begin);
  __syncthreads();
  const float mean = mean_of[threadIdx.x];
  float squares[1] = {};
  if (c < n) {
#pragma unroll 8
    for (size_t r = begin + threadIdx.y; r < end; r += blockDim.y) {
      const float shift = x[r * n + c] - mean;
      squares[0] += shift * shift;
    }
  }
  AddOverRows(squares);
  if (threadIdx.y > 0 || c >= n) return;
  means[blockIdx.x * n + c] = mean;
  m2s[blockIdx.x * n + c] = squares[0];
}

// The outputs of BatchNormStatistics.
struct Statistics {
  float *mean, *inv_std, *running_mean, *running_var;
};

// Combines the moments of the blocks in double (Chan, Golub and LeVeque, 1979).
__global__ void __launch_bounds__(kBlockThreads)
    JoinMomentsKernel(const float* means, const float* m2s, size_t b, size_t n, float factor,
                      float eps, Statistics out) {
  const size_t blocks = CeilDivide(b, kRowsOfBlock);
  const size_t c = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  __shared__ double mean_of[kBlockThreads];  // [blockDim.x]
  const auto rows_of = [=](size_t k) {
    return static_cast<double>(k + 1 < blocks ? kRowsOfBlock : b - k * kRowsOfBlock);
  };
  double sum[1] = {};
  if (c < n) {
    for (size_t k = threadIdx.y; k < blocks; k += blockDim.y)
      sum[0] += rows_of(k) * means[k * n + c];
  }
  AddOverRows(sum);
  const double rows = static_cast<double>(b);
  if (threadIdx.y == 0) mean_of[threadIdx.x] = sum[0] / rows;
  __syncthreads();
  const double mean = mean_of[threadIdx.x];
  double m2[1] = {};
  if (c < n) {
    for (size_t k = threadIdx.y; k < blocks; k += blockDim.y) {
      const double shift = means[k * n + c] - mean;
      m2[0] += m2s[k * n + c] + rows_of(k) * shift * shift;
    }
  }
  AddOverRows(m2);
  if (threadIdx.y > 0 || c >= n) return;
  const double unbiased = m2[0] / (b > 1 ? rows - 1.0 : 1.0);
  const auto batch_mean = static_cast<float>(mean);
  out.mean[c] = batch_mean;
  out.inv_std[c] = static_cast<float>(1.0 / sqrt(m2[0] / rows + static_cast<double>(eps)));
  out.running_mean[c] = (1.0f - factor) * out.running_mean[c] + factor * batch_mean;
  out.running_var[c] = (1.0f - factor) * out.running_var[c] + factor * static_cast<float>(unbiased);
}

// dx = factor(0) dz - factor(1) - factor(2) (x - mean). Turns the column sums in dgamma into the
// gradient and computes the factors, [3, n].
__global__ void __launch_bounds__(kBlockThreads)
    FactorsKernel(const float* inv_std, const float* gamma, float* dgamma, const float* dbeta,
                  float share, size_t n, float* factor) {
  const size_t c = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (c >= n) return;
  dgamma[c] *= inv_std[c];
  const float a = gamma[c] * inv_std[c];
  factor[c] = a;
  factor[n + c] = a * dbeta[c] * share;
  factor[2 * n + c] = a * dgamma[c] * share * inv_std[c];
}

// With `relu`, y shows which elements the epilogue cut or dropped.
template <typename T>
struct Operands {
  const T *x, *y, *dy;
  const float* mean;
  size_t n;
  bool relu;
  float scale;
  __device__ float dz(size_t r, size_t c) const {
    const size_t at = r * n + c;
    return relu ? BehindRelu(y[at], dy[at], scale) : float{dy[at]};
  }
};

// Rows that an op reads only in some cases: zeros if the pointer is null.
template <typename T>
struct RowsOrZeros {
  using Element = T;
  RowsOf<T> rows;
  bool Holds(unsigned count) const { return rows.Holds(count); }
  template <unsigned kCount>
  __device__ Pack<T, kCount> Load(Place at) const {
    if (rows.x == nullptr) return {};
    return rows.template Load<kCount>(at);
  }
};

template <typename T>
void BatchNormForwardOf(const T* x, const float* mean, const float* inv_std, const float* gamma,
                        const float* beta, const BatchNormEpilogue& epilogue, T* y, size_t b,
                        size_t n, Stream& stream) {
  const DropoutDraw draw = epilogue.dropout;
  if (draw.rate > 0.0f) {
    const int32_t below = KeepBelow(draw.rate);
    const float scale = KeepScale(draw.rate);
    return DropoutRows("BatchNormForward", x, draw, y, nullptr, b, n, stream,
                       [=] __device__(float in, size_t c, uint16_t half) {
                         const float z = Normalized(in, mean[c], inv_std[c], gamma[c], beta[c]);
                         return DroppedRelu(z, half, below, scale);
                       });
  }
  const float floor = epilogue.relu ? 0.0f : -INFINITY;
  MapMatrices(
      "BatchNormForward", b, n, Write::kOverwrite, y, n, stream,
      [=] __device__(float in, float m, float s, float g, float shift) {
        const float z = Normalized(in, m, s, g, shift);
        return z < floor ? floor : z;
      },
      RowsOf<T>{x, n}, ColumnsOf<float>{mean}, ColumnsOf<float>{inv_std}, ColumnsOf<float>{gamma},
      ColumnsOf<float>{beta});
}

template <typename T>
void BatchNormBackwardOf(const Operands<T>& in, const float* inv_std, const float* gamma,
                         Write dx_write, T* dx, float* dgamma, float* dbeta, size_t b,
                         float* scratch, Stream& stream) {
  const size_t n = in.n, blocks = CeilDivide(b, kRowsOfBlock);
  ColumnSums<2>("BatchNormBackward", b, n, scratch, stream,
                [=] __device__(size_t r, size_t c, float* sum) {
                  const float dz = in.dz(r, c);
                  sum[0] += dz * (in.x[r * n + c] - in.mean[c]);
                  sum[1] += dz;
                });
  AddBlocks("BatchNormBackward: sums", scratch, 2, blocks, n, dgamma, dbeta, stream);
  float* factor = scratch + 2 * blocks * n;
  const float share = b == 0 ? 0.0f : 1.0f / static_cast<float>(b);
  Launch("BatchNormBackward: factors", FactorsKernel,
         dim3(static_cast<unsigned>(CeilDivide(n, kBlockThreads))), dim3(kBlockThreads), 0, stream,
         inv_std, gamma, dgamma, dbeta, share, n, factor);
  if (dx == nullptr) return;
  const bool relu = in.relu;
  const float scale = in.scale;
  MapMatrices(
      "BatchNormBackward: dx", b, n, dx_write, dx, n, stream,
      [=] __device__(float x, float y, float dy, float mean, float f0, float f1, float f2) {
        const float dz = relu ? BehindRelu(y, dy, scale) : dy;
        return f0 * dz - f1 - f2 * (x - mean);
      },
      RowsOf<T>{in.x, n}, RowsOrZeros<T>{{relu ? in.y : nullptr, n}}, RowsOf<T>{in.dy, n},
      ColumnsOf<float>{in.mean}, ColumnsOf<float>{factor}, ColumnsOf<float>{factor + n},
      ColumnsOf<float>{factor + 2 * n});
}

template <typename T>
void InferenceOf(const T* x, const float* running_mean, const float* running_var, float eps,
                 const float* gamma, const float* beta, bool relu, T* y, size_t b, size_t n,
                 Stream& stream) {
  const float floor = relu ? 0.0f : -INFINITY;
  MapMatrices(
      "BatchNormInference", b, n, Write::kOverwrite, y, n, stream,
      [=] __device__(float in, float m, float var, float g, float shift) {
        const float z = Normalized(in, m, 1.0f / sqrtf(var + eps), g, shift);
        return z < floor ? floor : z;
      },
      RowsOf<T>{x, n}, ColumnsOf<float>{running_mean}, ColumnsOf<float>{running_var},
      ColumnsOf<float>{gamma}, ColumnsOf<float>{beta});
}

}  // namespace

void BatchNormStatistics(ConstValues x, float factor, float eps, float* mean, float* inv_std,
                         float* running_mean, float* running_var, size_t b, size_t n,
                         float* scratch, Stream& stream) {
  if (n == 0) return;
  CISTERN_CHECK(b > 0);
  const size_t blocks = CeilDivide(b, kRowsOfBlock);
  float *means = scratch, *m2s = scratch + blocks * n;
  const dim3 block = RowBlock(n, kSumWidth);
  const auto strips = static_cast<unsigned>(CeilDivide(n, block.x));
  ForType(x.type, [&]<typename T>() {
    Launch("BatchNormStatistics", BlockMomentsKernel<T>,
           dim3(static_cast<unsigned>(blocks), strips), block, 0, stream, As<T>(x), b, n, means,
           m2s);
  });
  const Statistics out = {mean, inv_std, running_mean, running_var};
  Launch("BatchNormStatistics: join", JoinMomentsKernel, dim3(strips), block, 0, stream, means, m2s,
         b, n, factor, eps, out);
}

void BatchNormForward(ConstValues x, const float* mean, const float* inv_std, const float* gamma,
                      const float* beta, const BatchNormEpilogue& epilogue, Values y, size_t b,
                      size_t n, Stream& stream) {
  const DropoutDraw draw = epilogue.dropout;
  CISTERN_CHECK(draw.rate >= 0.0f && draw.rate < 1.0f);
  CISTERN_CHECK(draw.rate == 0.0f || epilogue.relu);
  ForType(x.type, [&]<typename T>() {
    BatchNormForwardOf(As<T>(x), mean, inv_std, gamma, beta, epilogue, As<T>(y), b, n, stream);
  });
}

void BatchNormBackward(ConstValues x, ConstValues y, ConstValues dy, const float* mean,
                       const float* inv_std, const float* gamma, const BatchNormEpilogue& epilogue,
                       Write dx_write, Values dx, float* dgamma, float* dbeta, size_t b, size_t n,
                       float* scratch, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    const Operands<T> in = {
        As<T>(x), As<T>(y), As<T>(dy), mean, n, epilogue.relu, KeepScale(epilogue.dropout.rate)};
    BatchNormBackwardOf(in, inv_std, gamma, dx_write, As<T>(dx), dgamma, dbeta, b, scratch, stream);
  });
}

void BatchNormInference(ConstValues x, const float* running_mean, const float* running_var,
                        float eps, const float* gamma, const float* beta, bool relu, Values y,
                        size_t b, size_t n, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    InferenceOf(As<T>(x), running_mean, running_var, eps, gamma, beta, relu, As<T>(y), b, n,
                stream);
  });
}

}  // namespace cistern::op::gpu
