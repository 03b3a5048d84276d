// Memory traffic per element of y, of s bytes: GruCell 11 s; backward 16 s. Three exponentials and
// as many divisions in GruCell, about 60 FLOPs.
#include "cuda/op/dense/gru_cell.h"

#include "cuda/op/dense/gru_formula.h"
#include "cuda/op/primitive/map.cuh"

namespace cistern::op::gpu {
namespace {

// Part p of row r is at r * 3 n + p n.
template <typename T>
__device__ inline GruParts ReadGruParts(const T* x, size_t at, size_t n) {
  if (x == nullptr) return {0.0f, 0.0f, 0.0f};
  return {x[at], x[at + n], x[at + 2 * n]};
}

template <typename T>
__device__ inline void WriteGruParts(const GruParts& parts, T* x, size_t at, size_t n) {
  x[at] = parts.r;
  x[at + n] = parts.i;
  x[at + 2 * n] = parts.m;
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    GruCellKernel(T* gates, const T* product, const T* h, T* y, size_t count, size_t n) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i >= count) return;
  const size_t at = i / n * 3 * n + i % n;
  const GruParts made = GruGatesAt(ReadGruParts<T>(gates, at, n), ReadGruParts(product, at, n));
  WriteGruParts(made, gates, at, n);
  y[i] = GruOutputAt(made, h == nullptr ? 0.0f : float{h[i]});
}

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    GruCellBackwardKernel(const T* gates, const T* product, const T* h, const T* dy, T* dgates,
                          T* dproduct, T* dh, size_t count, size_t n) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i >= count) return;
  const size_t at = i / n * 3 * n + i % n;
  const GruParts before = ReadGruParts(gates, at, n);
  const float out = dy[i];
  GruParts grad =
      GruGradientAt(before, ReadGruParts(product, at, n).m, h == nullptr ? 0.0f : float{h[i]}, out);
  WriteGruParts(grad, dgates, at, n);
  grad.m *= before.r;
  WriteGruParts(grad, dproduct, at, n);
  dh[i] = out * before.i;
}

dim3 GruGrid(size_t count) {
  return dim3(static_cast<unsigned>(CeilDivide(count, kBlockThreads)));
}

}  // namespace

void GruCell(Values gates, ConstValues product, ConstValues h, Values y, size_t b, size_t n,
             Stream& stream) {
  if (b * n == 0) return;
  ForType(gates.type, [&]<typename T>() {
    Launch("GruCell", GruCellKernel<T>, GruGrid(b * n), dim3(kBlockThreads), 0, stream,
           As<T>(gates), As<T>(product), As<T>(h), As<T>(y), b * n, n);
  });
}

void GruCellBackward(ConstValues gates, ConstValues product, ConstValues h, ConstValues dy,
                     Values dgates, Values dproduct, Values dh, size_t b, size_t n,
                     Stream& stream) {
  if (b * n == 0) return;
  ForType(gates.type, [&]<typename T>() {
    Launch("GruCellBackward", GruCellBackwardKernel<T>, GruGrid(b * n), dim3(kBlockThreads), 0,
           stream, As<T>(gates), As<T>(product), As<T>(h), As<T>(dy), As<T>(dgates),
           As<T>(dproduct), As<T>(dh), b * n, n);
  });
}

}  // namespace cistern::op::gpu
