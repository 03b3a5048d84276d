// Memory traffic per element of s bytes: Dice 2 s; backward 6 s in two kernels (7 s where it
// accumulates). One exponential and one division per element and kernel, about 20 FLOPs.
#include "cuda/op/dense/dice.h"

#include "cuda/op/dense/logistic_formula.h"
#include "cuda/op/primitive/map_packs.cuh"

namespace cistern::op {
namespace gpu {
namespace {

// An input of MapMatrices: the statistics of each column.
struct NormOfColumn {
  float mean, inv_std;
};
template <typename F>
struct NormsOfColumns {
  using Element = F;
  ColumnsOf<F> mean, inv_std;
  template <unsigned kCount>
  struct Both {
    Pack<F, kCount> mean, inv_std;
    __device__ NormOfColumn operator[](unsigned e) const { return {mean[e], inv_std[e]}; }
  };
  bool Holds(unsigned count) const { return mean.Holds(count) && inv_std.Holds(count); }
  template <unsigned kCount>
  __device__ Both<kCount> Load(Place at) const {
    return {mean.template Load<kCount>(at), inv_std.template Load<kCount>(at)};
  }
};

}  // namespace
}  // namespace gpu

// Its formula needs the registers of two matrices.
template <typename F>
inline constexpr unsigned kMatrices<gpu::NormsOfColumns<F>> = 2;

namespace gpu {
namespace {

template <typename T>
void DiceOf(const T* x, const float* mean, const float* inv_std, float alpha, T* y, size_t b,
            size_t n, Stream& stream) {
  MapMatrices(
      "Dice", b, n, Write::kOverwrite, y, n, stream,
      [=] __device__(float in, float m, float s) {
        const LogisticShares p = LogisticAt((in - m) * s);
        return in * (p.above + alpha * p.below);
      },
      RowsOf<T>{x, n}, ColumnsOf<float>{mean}, ColumnsOf<float>{inv_std});
}

template <typename T>
void DiceInferenceOf(const T* x, const float* mean, const float* var, float eps, float alpha, T* y,
                     size_t b, size_t n, Stream& stream) {
  MapMatrices(
      "DiceInference", b, n, Write::kOverwrite, y, n, stream,
      [=] __device__(float in, float m, float v) {
        const LogisticShares p = LogisticAt((in - m) * (1.0f / sqrtf(v + eps)));
        return in * (p.above + alpha * p.below);
      },
      RowsOf<T>{x, n}, ColumnsOf<float>{mean}, ColumnsOf<float>{var});
}

// dx first: dz may be dy.
template <typename T>
void DiceBackwardOf(const T* x, const float* mean, const float* inv_std, float alpha, const T* dy,
                    Write dx_write, T* dx, T* dz, size_t b, size_t n, Stream& stream) {
  MapMatrices(
      "DiceBackward: dx", b, n, dx_write, dx, n, stream,
      [=] __device__(float in, float g, NormOfColumn norm) {
        const LogisticShares p = LogisticAt((in - norm.mean) * norm.inv_std);
        return (p.above + alpha * p.below) * g;
      },
      RowsOf<T>{x, n}, RowsOf<T>{dy, n}, NormsOfColumns<float>{{mean}, {inv_std}});
  MapMatrices(
      "DiceBackward: dz", b, n, Write::kOverwrite, dz, n, stream,
      [=] __device__(float in, float g, NormOfColumn norm) {
        const LogisticShares p = LogisticAt((in - norm.mean) * norm.inv_std);
        return (1.0f - alpha) * in * p.above * p.below * g;
      },
      RowsOf<T>{x, n}, RowsOf<T>{dy, n}, NormsOfColumns<float>{{mean}, {inv_std}});
}

}  // namespace

void Dice(ConstValues x, const float* mean, const float* inv_std, float alpha, Values y, size_t b,
          size_t n, Stream& stream) {
  ForType(x.type,
          [&]<typename T>() { DiceOf(As<T>(x), mean, inv_std, alpha, As<T>(y), b, n, stream); });
}

void DiceInference(ConstValues x, const float* running_mean, const float* running_var, float eps,
                   float alpha, Values y, size_t b, size_t n, Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    DiceInferenceOf(As<T>(x), running_mean, running_var, eps, alpha, As<T>(y), b, n, stream);
  });
}

void DiceBackward(ConstValues x, const float* mean, const float* inv_std, float alpha,
                  ConstValues dy, Write dx_write, Values dx, Values dz, size_t b, size_t n,
                  Stream& stream) {
  ForType(x.type, [&]<typename T>() {
    DiceBackwardOf(As<T>(x), mean, inv_std, alpha, As<T>(dy), dx_write, As<T>(dx), As<T>(dz), b, n,
                   stream);
  });
}

}  // namespace gpu
}  // namespace cistern::op
