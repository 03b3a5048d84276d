// 2 batch m n k FLOPs in float32. Memory traffic for elements of s bytes: s batch (m k
// CeilDivide(n, 16) + k n CeilDivide(m, 16) + m n), and s batch m n more where it accumulates; the
// matrices are small, so repeated reads hit the cache.
#include "cuda/op/dense/batched_gemm.h"

#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op::gpu {
namespace {

constexpr unsigned kGemmTile = 16;  // kGemmTile * kGemmTile = kBlockThreads
static_assert(kGemmTile * kGemmTile == kBlockThreads);

struct BatchedShape {
  bool transpose_a, transpose_b;
  size_t m, n, k;
  size_t tiles_n, tiles;  // of a product: in a row, in all
};

// A block computes one tile of one product. The tiles of A and B pass through shared memory, which
// they are read into along their rows, whether transposed or not.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    BatchedGemmKernel(BatchedShape shape, const T* a, const T* b, bool accumulate, T* c) {
  __shared__ float left[kGemmTile][kGemmTile + 1], right[kGemmTile][kGemmTile + 1];
  const size_t m = shape.m, n = shape.n, k = shape.k;
  const size_t product = blockIdx.x / shape.tiles, tile = blockIdx.x % shape.tiles;
  const size_t r0 = tile / shape.tiles_n * kGemmTile, c0 = tile % shape.tiles_n * kGemmTile;
  const unsigned x = threadIdx.x, y = threadIdx.y;
  a += product * m * k;
  b += product * k * n;
  float sum = 0.0f;
  for (size_t k0 = 0; k0 < k; k0 += kGemmTile) {
    if (shape.transpose_a) {
      const bool within = r0 + x < m && k0 + y < k;
      left[x][y] = within ? float{a[(k0 + y) * m + r0 + x]} : 0.0f;
    } else {
      const bool within = r0 + y < m && k0 + x < k;
      left[y][x] = within ? float{a[(r0 + y) * k + k0 + x]} : 0.0f;
    }
    if (shape.transpose_b) {
      const bool within = k0 + x < k && c0 + y < n;
      right[x][y] = within ? float{b[(c0 + y) * k + k0 + x]} : 0.0f;
    } else {
      const bool within = k0 + y < k && c0 + x < n;
      right[y][x] = within ? float{b[(k0 + y) * n + c0 + x]} : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (unsigned q = 0; q < kGemmTile; ++q) sum += left[y][q] * right[q][x];
    __syncthreads();
  }
  if (r0 + y >= m || c0 + x >= n) return;
  T* to = c + (product * m + r0 + y) * n + c0 + x;
  *to = accumulate ? RoundedSum(*to, sum) : sum;
}

}  // namespace

void BatchedGemm(Transpose transpose_a, Transpose transpose_b, size_t batch, size_t m, size_t n,
                 size_t k, ConstValues a, ConstValues b, Write write, Values c, Stream& stream) {
  if (batch == 0 || m == 0 || n == 0) return;
  BatchedShape shape = {
      transpose_a == Transpose::kYes, transpose_b == Transpose::kYes, m, n, k, 0, 0};
  shape.tiles_n = CeilDivide(n, kGemmTile);
  shape.tiles = shape.tiles_n * CeilDivide(m, kGemmTile);
  ForType(c.type, [&]<typename T>() {
    Launch("BatchedGemm", BatchedGemmKernel<T>, dim3(static_cast<unsigned>(batch * shape.tiles)),
           dim3(kGemmTile, kGemmTile), 0, stream, shape, As<T>(a), As<T>(b),
           write == Write::kAccumulate, As<T>(c));
  });
}

}  // namespace cistern::op::gpu
