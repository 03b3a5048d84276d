#include "cuda/op/dense/logistic_formula.h"
#include "cuda/op/dense/silu_attention.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // silu_attention.cu
decltype(op::Silu) Silu;
decltype(op::SiluBackward) SiluBackward;
decltype(op::SiluShares) SiluShares;
decltype(op::SiluSharesBackward) SiluSharesBackward;
decltype(op::RelativeBiasGradient) RelativeBiasGradient;
}  // namespace gpu

namespace {

constexpr size_t kSiluCost = 16;  // an exponential, relative to a load and a store

template <typename T>
void SiluOf(const T* x, T* y, size_t count) {
  ForPieces(count, kElementGrain, kSiluCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = SiluAt(x[i]);
  });
}

template <typename T>
void SiluBackwardOf(const T* x, const T* dy, Write write, T* dx, size_t count) {
  ForPieces(count, kElementGrain, kSiluCost * count, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float grad = SiluSlopeAt(x[i]) * float{dy[i]};
      dx[i] = write == Write::kAccumulate ? dx[i] + grad : grad;
    }
  });
}

// Calls value(r, i, j, share) for the elements of each row r, which is that of position i: share is
// 0 where it does not attend to j.
template <typename T, typename Value>
void ForShares(const SiluAttention& of, const Value& value) {
  const auto [bias, mask, causal, b, heads, n] = of;
  const T* const kept = As<T>(mask);
  const size_t rows = b * heads * n;
  const auto body = [=, &value](size_t begin, size_t end) {
    const float scale = 1.0f / static_cast<float>(n);
    for (size_t r = begin; r < end; ++r) {
      const size_t i = r % n, head = r / n % heads, sample = r / n / heads;
      for (size_t j = 0; j < n; ++j) {
        float share = causal && j > i ? 0.0f : scale;
        if (kept != nullptr) share *= float{kept[(sample * n + i) * n + j]};
        value(r * n + j, bias[head * (2 * n - 1) + i + n - 1 - j], share);
      }
    }
  };
  ForPieces(rows, RowGrain(n), kSiluCost * rows * n, body);
}

template <typename T>
void RelativeBiasGradientOf(const T* dx, float* dbias, size_t b, size_t heads, size_t n) {
  const size_t width = 2 * n - 1;
  ForPieces(heads * width, 1, b * heads * n * n, [=](size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      const size_t head = at / width, d = at % width;
      double sum = 0;
      for (size_t s = 0; s < b; ++s) {
        for (size_t i = d + 1 > n ? d + 1 - n : 0; i < n && i <= d; ++i) {
          const size_t j = i + n - 1 - d;
          sum += float{dx[((s * heads + head) * n + i) * n + j]};
        }
      }
      dbias[at] = static_cast<float>(sum);
    }
  });
}

}  // namespace

void Silu(ConstValues x, Values y, size_t count, Stream& stream) {
  CISTERN_RUN_ON_GPU(Silu, x, y, count);
  ForType(x.type, [&]<typename T>() { SiluOf(As<T>(x), As<T>(y), count); });
}

void SiluBackward(ConstValues x, ConstValues dy, Write write, Values dx, size_t count,
                  Stream& stream) {
  CISTERN_RUN_ON_GPU(SiluBackward, x, dy, write, dx, count);
  ForType(x.type,
          [&]<typename T>() { SiluBackwardOf(As<T>(x), As<T>(dy), write, As<T>(dx), count); });
}

void SiluShares(const SiluAttention& of, ConstValues x, Values y, Stream& stream) {
  CISTERN_RUN_ON_GPU(SiluShares, of, x, y);
  ForType(x.type, [&]<typename T>() {
    const T* const in = As<T>(x);
    T* const out = As<T>(y);
    ForShares<T>(of, [=](size_t at, float bias, float share) {
      out[at] = share == 0.0f ? 0.0f : share * SiluAt(float{in[at]} + bias);
    });
  });
}

void SiluSharesBackward(const SiluAttention& of, ConstValues x, ConstValues dy, Values dx,
                        Stream& stream) {
  CISTERN_RUN_ON_GPU(SiluSharesBackward, of, x, dy, dx);
  ForType(x.type, [&]<typename T>() {
    const T *const in = As<T>(x), *const grad = As<T>(dy);
    T* const out = As<T>(dx);
    ForShares<T>(of, [=](size_t at, float bias, float share) {
      out[at] = share == 0.0f ? 0.0f : share * SiluSlopeAt(float{in[at]} + bias) * float{grad[at]};
    });
  });
}

void RelativeBiasGradient(ConstValues dx, float* dbias, size_t b, size_t heads, size_t n,
                          Stream& stream) {
  if (heads == 0 || n == 0) return;
  CISTERN_RUN_ON_GPU(RelativeBiasGradient, dx, dbias, b, heads, n);
  ForType(dx.type, [&]<typename T>() { RelativeBiasGradientOf(As<T>(dx), dbias, b, heads, n); });
}

}  // namespace cistern::op
