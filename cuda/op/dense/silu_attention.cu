// Memory traffic per element of s bytes: Silu 2 s, its backward pass 3 s (4 s where it
// accumulates); the shares 2 s and 3 s, and the mask once for all heads if it stays in the cache;
// the gradient of the bias s. About 15 FLOPs per element.
#include "cuda/op/dense/silu_attention.h"

#include "cuda/op/dense/logistic_formula.h"
#include "cuda/op/primitive/map.cuh"
#include "cuda/op/primitive/map_packs.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op::gpu {
namespace {

// The bias of an element of [b, heads, n, n], and the factor of its share.
struct ShareAt {
  float bias, share;
};

template <typename T>
struct ShareRows {
  const float* bias;
  const T* mask;  // or null
  bool causal;
  size_t heads, n;

  __device__ ShareAt operator()(size_t r, size_t j) const {
    const size_t i = r % n, head = r / n % heads, sample = r / n / heads;
    float share = causal && j > i ? 0.0f : 1.0f / static_cast<float>(n);
    if (mask != nullptr) share *= float{mask[(sample * n + i) * n + j]};
    return {bias[head * (2 * n - 1) + i + n - 1 - j], share};
  }
};

template <typename T>
ShareRows<T> ShareRowsOf(const SiluAttention& of) {
  return {of.bias, As<T>(of.mask), of.causal, of.heads, of.n};
}

template <typename T>
void SiluOf(const T* x, T* y, size_t count, Stream& stream) {
  MapArrays(
      "Silu", count, Write::kOverwrite, y, stream, [=] __device__(float in) { return SiluAt(in); },
      ArrayOf<T>{x});
}

template <typename T>
void SiluBackwardOf(const T* x, const T* dy, Write write, T* dx, size_t count, Stream& stream) {
  MapArrays(
      "SiluBackward", count, write, dx, stream,
      [=] __device__(float in, float g) { return SiluSlopeAt(in) * g; }, ArrayOf<T>{x},
      ArrayOf<T>{dy});
}

template <typename T>
void SiluSharesOf(const SiluAttention& of, const T* x, T* y, Stream& stream) {
  const ShareRows<T> at = ShareRowsOf<T>(of);
  const size_t n = of.n;
  MapRows("SiluShares", of.b * of.heads * n, n, Write::kOverwrite, y, n, stream,
          [=] __device__(size_t r, size_t j) {
            const ShareAt of_one = at(r, j);
            if (of_one.share == 0.0f) return 0.0f;
            return of_one.share * SiluAt(float{x[r * n + j]} + of_one.bias);
          });
}

template <typename T>
void SiluSharesBackwardOf(const SiluAttention& of, const T* x, const T* dy, T* dx, Stream& stream) {
  const ShareRows<T> at = ShareRowsOf<T>(of);
  const size_t n = of.n;
  MapRows("SiluSharesBackward", of.b * of.heads * n, n, Write::kOverwrite, dx, n, stream,
          [=] __device__(size_t r, size_t j) {
            const ShareAt of_one = at(r, j);
            if (of_one.share == 0.0f) return 0.0f;
            const float slope = SiluSlopeAt(float{x[r * n + j]} + of_one.bias);
            return of_one.share * slope * float{dy[r * n + j]};
          });
}

// A block for each distance of each head.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    RelativeBiasKernel(const T* dx, float* dbias, size_t b, size_t heads, size_t n) {
  const size_t width = 2 * n - 1, head = blockIdx.x / width, d = blockIdx.x % width;
  const size_t first = d + 1 > n ? d + 1 - n : 0, last = d < n ? d + 1 : n;  // of i
  const size_t length = last - first;
  double sum = 0;
  for (size_t t = threadIdx.x; t < b * length; t += kBlockThreads) {
    const size_t s = t / length, i = first + t % length, j = i + n - 1 - d;
    sum += float{dx[((s * heads + head) * n + i) * n + j]};
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) dbias[blockIdx.x] = static_cast<float>(sum);
}

}  // namespace

void Silu(ConstValues x, Values y, size_t count, Stream& stream) {
  ForType(x.type, [&]<typename T>() { SiluOf(As<T>(x), As<T>(y), count, stream); });
}

void SiluBackward(ConstValues x, ConstValues dy, Write write, Values dx, size_t count,
                  Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    SiluBackwardOf(As<T>(x), As<T>(dy), write, As<T>(dx), count, stream);
  });
}

void SiluShares(const SiluAttention& of, ConstValues x, Values y, Stream& stream) {
  if (of.b == 0 || of.heads == 0 || of.n == 0) return;
  ForType(x.type, [&]<typename T>() { SiluSharesOf(of, As<T>(x), As<T>(y), stream); });
}

void SiluSharesBackward(const SiluAttention& of, ConstValues x, ConstValues dy, Values dx,
                        Stream& stream) {
  if (of.b == 0 || of.heads == 0 || of.n == 0) return;
  ForType(x.type,
          [&]<typename T>() { SiluSharesBackwardOf(of, As<T>(x), As<T>(dy), As<T>(dx), stream); });
}

void RelativeBiasGradient(ConstValues dx, float* dbias, size_t b, size_t heads, size_t n,
                          Stream& stream) {
  ForType(dx.type, [&]<typename T>() {
    Launch("RelativeBiasGradient", RelativeBiasKernel<T>,
           dim3(static_cast<unsigned>(heads * (2 * n - 1))), dim3(kBlockThreads), 0, stream,
           As<T>(dx), dbias, b, heads, n);
  });
}

}  // namespace cistern::op::gpu
