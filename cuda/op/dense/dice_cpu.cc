#include "cuda/op/dense/dice.h"

#include <cmath>

#include "cuda/op/dense/logistic_formula.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // dice.cu
decltype(op::Dice) Dice;
decltype(op::DiceInference) DiceInference;
decltype(op::DiceBackward) DiceBackward;
}  // namespace gpu

namespace {

constexpr size_t kDiceCost = 16;  // an exponential, relative to a load and a store

// inv_std_of(c): of column c.
template <typename T, typename InvStd>
void DiceOf(const T* x, const float* mean, const InvStd& inv_std_of, float alpha, T* y, size_t b,
            size_t n) {
  ForPieces(b, RowGrain(n), kDiceCost * b * n, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      for (size_t c = 0; c < n; ++c) {
        const float in = x[r * n + c];
        const LogisticShares p = LogisticAt((in - mean[c]) * inv_std_of(c));
        y[r * n + c] = in * (p.above + alpha * p.below);
      }
    }
  });
}

template <typename T>
void DiceBackwardOf(const T* x, const float* mean, const float* inv_std, float alpha, const T* dy,
                    Write dx_write, T* dx, T* dz, size_t b, size_t n) {
  ForPieces(b, RowGrain(n), kDiceCost * b * n, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      for (size_t c = 0; c < n; ++c) {
        const size_t i = r * n + c;
        const float in = x[i], g = dy[i];
        const LogisticShares p = LogisticAt((in - mean[c]) * inv_std[c]);
        const float direct = (p.above + alpha * p.below) * g;
        dx[i] = dx_write == Write::kAccumulate ? dx[i] + direct : direct;
        dz[i] = (1.0f - alpha) * in * p.above * p.below * g;
      }
    }
  });
}

}  // namespace

void Dice(ConstValues x, const float* mean, const float* inv_std, float alpha, Values y, size_t b,
          size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(Dice, x, mean, inv_std, alpha, y, b, n);
  ForType(x.type, [&]<typename T>() {
    DiceOf(
        As<T>(x), mean, [=](size_t c) { return inv_std[c]; }, alpha, As<T>(y), b, n);
  });
}

void DiceInference(ConstValues x, const float* running_mean, const float* running_var, float eps,
                   float alpha, Values y, size_t b, size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(DiceInference, x, running_mean, running_var, eps, alpha, y, b, n);
  ForType(x.type, [&]<typename T>() {
    const auto inv_std = [=](size_t c) { return 1.0f / std::sqrt(running_var[c] + eps); };
    DiceOf(As<T>(x), running_mean, inv_std, alpha, As<T>(y), b, n);
  });
}

void DiceBackward(ConstValues x, const float* mean, const float* inv_std, float alpha,
                  ConstValues dy, Write dx_write, Values dx, Values dz, size_t b, size_t n,
                  Stream& stream) {
  CISTERN_RUN_ON_GPU(DiceBackward, x, mean, inv_std, alpha, dy, dx_write, dx, dz, b, n);
  ForType(x.type, [&]<typename T>() {
    DiceBackwardOf(As<T>(x), mean, inv_std, alpha, As<T>(dy), dx_write, As<T>(dx), As<T>(dz), b, n);
  });
}

}  // namespace cistern::op
