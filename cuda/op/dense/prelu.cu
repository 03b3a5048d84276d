// Memory traffic per element of s bytes: Prelu 2 s, backward 5 s in two kernels (6 s where it
// accumulates). 2 and 4 FLOPs per element.
#include "cuda/op/dense/prelu.h"

#include "cuda/op/primitive/map_packs.cuh"
#include "cuda/op/primitive/reduce.cuh"

namespace cistern::op {
namespace gpu {
namespace {

template <typename F>
struct SlopesOf : ColumnsOf<F> {};

}  // namespace
}  // namespace gpu

// A choice for each element takes registers: a thread computes two rows, else the compiler spills.
template <typename F>
inline constexpr unsigned kMatrices<gpu::SlopesOf<F>> = 2;

namespace gpu {
namespace {

template <typename T>
void PreluOf(const T* x, const float* slope, T* y, size_t b, size_t n, Stream& stream) {
  MapMatrices(
      "Prelu", b, n, Write::kOverwrite, y, n, stream,
      [=] __device__(float in, float a) { return in > 0.0f ? in : a * in; }, RowsOf<T>{x, n},
      SlopesOf<float>{{slope}});
}

// dslope first: dx may be dy.
template <typename T>
void PreluBackwardOf(const T* x, const float* slope, const T* dy, Write dx_write, T* dx,
                     float* dslope, size_t b, size_t n, float* scratch, Stream& stream) {
  ColumnSums<1>("PreluBackward: dslope", b, n, scratch, stream,
                [=] __device__(size_t r, size_t c, float* sum) {
                  const float in = x[r * n + c], g = dy[r * n + c];
                  sum[0] += in > 0.0f ? 0.0f : in * g;
                });
  AddBlocks("PreluBackward: dslope", scratch, 1, CeilDivide(b, kRowsOfBlock), n, dslope, nullptr,
            stream);
  if (dx == nullptr) return;
  MapMatrices(
      "PreluBackward: dx", b, n, dx_write, dx, n, stream,
      [=] __device__(float in, float g, float a) { return in > 0.0f ? g : a * g; }, RowsOf<T>{x, n},
      RowsOf<T>{dy, n}, SlopesOf<float>{{slope}});
}

}  // namespace

void Prelu(ConstValues x, const float* slope, Values y, size_t b, size_t n, Stream& stream) {
  ForType(x.type, [&]<typename T>() { PreluOf(As<T>(x), slope, As<T>(y), b, n, stream); });
}

void PreluBackward(ConstValues x, const float* slope, ConstValues dy, Write dx_write, Values dx,
                   float* dslope, size_t b, size_t n, float* scratch, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    PreluBackwardOf(As<T>(x), slope, As<T>(dy), dx_write, As<T>(dx), dslope, b, n, scratch, stream);
  });
}

}  // namespace gpu
}  // namespace cistern::op
