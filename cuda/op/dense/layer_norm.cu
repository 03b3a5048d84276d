// Memory traffic for b n elements of s bytes: LayerNorm 2 s (the second and third read of a row hit
// the cache); backward 5 s in two kernels (6 s where it accumulates), and b n / 8 floats of partial
// sums.
#include "cuda/op/dense/layer_norm.h"

#include "cuda/op/primitive/map_packs.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

struct NormOfRow {
  float mean, inv_std;
};

// A row beyond the last has no columns, so that all threads of a warp take part in the shuffles.
template <typename T>
__device__ inline NormOfRow NormOf(const T* x, size_t columns, size_t n, float eps) {
  const float count = static_cast<float>(n);
  float sum = 0.0f, squares = 0.0f;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) sum += float{x[c]};
  const float mean = SumOverRow(sum) / count;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    const float centered = float{x[c]} - mean;
    squares += centered * centered;
  }
  return {mean, 1.0f / sqrtf(SumOverRow(squares) / count + eps)};
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    LayerNormKernel(const T* x, const float* gamma, const float* beta, float eps, T* y, size_t b,
                    size_t n) {
  const size_t r = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const size_t columns = r < b ? n : 0;
  const NormOfRow row = NormOf(x + r * n, columns, n, eps);
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    y[r * n + c] = (float{x[r * n + c]} - row.mean) * row.inv_std * gamma[c] + beta[c];
  }
}

// Writes dx unless it is null, and the statistics of each row.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    LayerNormBackwardKernel(const T* x, const float* gamma, float eps, const T* dy, bool accumulate,
                            T* dx, NormOfRow* norms, size_t b, size_t n) {
  const size_t r = size_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const size_t columns = r < b ? n : 0;
  const T *in = x + r * n, *g = dy + r * n;
  const NormOfRow row = NormOf(in, columns, n, eps);
  if (r < b && threadIdx.x == 0) norms[r] = row;
  float sum = 0.0f, weighted = 0.0f;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    const float grad = float{g[c]} * gamma[c];
    sum += grad;
    weighted += grad * ((float{in[c]} - row.mean) * row.inv_std);
  }
  const float mean = SumOverRow(sum) / static_cast<float>(n);
  const float slope = SumOverRow(weighted) / static_cast<float>(n);
  if (dx == nullptr) return;
  T* to = dx + r * n;
  for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
    const float xhat = (float{in[c]} - row.mean) * row.inv_std;
    const float grad = (float{g[c]} * gamma[c] - mean - xhat * slope) * row.inv_std;
    to[c] = accumulate ? RoundedSum(to[c], grad) : grad;
  }
}

dim3 LayerNormGrid(size_t b, dim3 block) {
  return dim3(static_cast<unsigned>(CeilDivide(b, block.y)));
}

template <typename T>
void LayerNormBackwardOf(const T* x, const float* gamma, float eps, const T* dy, bool accumulate,
                         T* dx, NormOfRow* norms, float* partial, size_t b, size_t n,
                         Stream& stream) {
  const dim3 block = RowBlock(n, kWarp);
  Launch("LayerNormBackward", LayerNormBackwardKernel<T>, LayerNormGrid(b, block), block, 0, stream,
         x, gamma, eps, dy, accumulate, dx, norms, b, n);
  ColumnSums<2>("LayerNormBackward: sums", b, n, partial, stream,
                [=] __device__(size_t r, size_t c, float* sum) {
                  const float grad = dy[r * n + c];
                  sum[0] += grad * ((float{x[r * n + c]} - norms[r].mean) * norms[r].inv_std);
                  sum[1] += grad;
                });
}

}  // namespace

void LayerNorm(ConstValues x, const float* gamma, const float* beta, float eps, Values y, size_t b,
               size_t n, Stream& stream) {
  if (b == 0 || n == 0) return;
  const dim3 block = RowBlock(n, kWarp);
  ForType(x.type, [&]<typename T>() {
    Launch("LayerNorm", LayerNormKernel<T>, LayerNormGrid(b, block), block, 0, stream, As<T>(x),
           gamma, beta, eps, As<T>(y), b, n);
  });
}

void LayerNormBackward(ConstValues x, const float* gamma, float eps, ConstValues dy, Write write,
                       Values dx, float* dgamma, float* dbeta, size_t b, size_t n, float* scratch,
                       Stream& stream) {
  if (n == 0) return;
  const size_t blocks = CeilDivide(b, kRowsOfBlock);
  float* const norms = scratch + 2 * blocks * n;
  if (b > 0) {
    ForType(x.type, [&]<typename T>() {
      LayerNormBackwardOf(As<T>(x), gamma, eps, As<T>(dy), write == Write::kAccumulate, As<T>(dx),
                          reinterpret_cast<NormOfRow*>(norms), scratch, b, n, stream);
    });
  }
  AddBlocks("LayerNormBackward: sums", scratch, 2, blocks, n, dgamma, dbeta, stream);
}

}  // namespace cistern::op::gpu
