#include "cuda/op/dense/layer_norm.h"

#include <cmath>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"

namespace cistern::op {

namespace gpu {  // layer_norm.cu
decltype(op::LayerNorm) LayerNorm;
decltype(op::LayerNormBackward) LayerNormBackward;
}  // namespace gpu

namespace {

struct RowStatistics {
  float mean, inv_std;
};

RowStatistics StatisticsOfRow(const float* x, size_t n, float eps) {
  const double count = static_cast<double>(n);
  double sum = 0, squares = 0;
  for (size_t c = 0; c < n; ++c) sum += x[c];
  const double mean = sum / count;
  for (size_t c = 0; c < n; ++c) squares += (x[c] - mean) * (x[c] - mean);
  return {static_cast<float>(mean),
          static_cast<float>(1 / std::sqrt(squares / count + double{eps}))};
}

template <typename T>
void LayerNormOf(const T* x, const float* gamma, const float* beta, float eps, T* y, size_t b,
                 size_t n) {
  ForPieces(b, RowGrain(n), 4 * b * n, [=](size_t begin, size_t end) {
    FloatRow<T> in(n), out(n);
    for (size_t r = begin; r < end; ++r) {
      const float* from = in.Read(x + r * n);
      float* to = out.Open(y + r * n, Write::kOverwrite);
      const RowStatistics row = StatisticsOfRow(from, n, eps);
#pragma omp simd
      for (size_t c = 0; c < n; ++c) {
        to[c] = (from[c] - row.mean) * row.inv_std * gamma[c] + beta[c];
      }
      out.Close(y + r * n);
    }
  });
}

// Adds a row's terms to dgamma and dbeta, [n] each.
void AddParameterTerms(const float* x, const float* dy, const RowStatistics& row, size_t n,
                       float* dgamma, float* dbeta) {
#pragma omp simd
  for (size_t c = 0; c < n; ++c) {
    dgamma[c] += dy[c] * ((x[c] - row.mean) * row.inv_std);
    dbeta[c] += dy[c];
  }
}

void InputGradient(const float* x, const float* gamma, const float* dy, const RowStatistics& row,
                   Write write, size_t n, float* dx) {
  double sum = 0, weighted = 0;
  for (size_t c = 0; c < n; ++c) {
    const double g = double{dy[c]} * double{gamma[c]};
    sum += g;
    weighted += g * double{(x[c] - row.mean) * row.inv_std};
  }
  const float mean = static_cast<float>(sum / static_cast<double>(n));
  const float slope = static_cast<float>(weighted / static_cast<double>(n));
#pragma omp simd
  for (size_t c = 0; c < n; ++c) {
    const float xhat = (x[c] - row.mean) * row.inv_std;
    const float grad = (dy[c] * gamma[c] - mean - xhat * slope) * row.inv_std;
    dx[c] = write == Write::kAccumulate ? dx[c] + grad : grad;
  }
}

// partial: [2, RowBlocks(b), n], the sums for dgamma, then those for dbeta.
template <typename T>
void LayerNormBackwardOf(const T* x, const float* gamma, float eps, const T* dy, Write write, T* dx,
                         size_t b, size_t n, float* partial) {
  const size_t blocks = RowBlocks(b);
  ForPieces(b, kRowsPerBlock, 8 * b * n, [=](size_t begin, size_t end) {
    float* const dgamma = partial + begin / kRowsPerBlock * n;
    float* const dbeta = dgamma + blocks * n;
    std::fill_n(dgamma, n, 0.0f);
    std::fill_n(dbeta, n, 0.0f);
    FloatRow<T> in(n), grad(n), out(n);
    for (size_t r = begin; r < end; ++r) {
      const float *from = in.Read(x + r * n), *g = grad.Read(dy + r * n);
      const RowStatistics row = StatisticsOfRow(from, n, eps);
      AddParameterTerms(from, g, row, n, dgamma, dbeta);
      if (dx == nullptr) continue;
      float* to = out.Open(dx + r * n, write);
      InputGradient(from, gamma, g, row, write, n, to);
      out.Close(dx + r * n);
    }
  });
}

}  // namespace

void LayerNorm(ConstValues x, const float* gamma, const float* beta, float eps, Values y, size_t b,
               size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(LayerNorm, x, gamma, beta, eps, y, b, n);
  ForType(x.type, [&]<typename T>() { LayerNormOf(As<T>(x), gamma, beta, eps, As<T>(y), b, n); });
}

void LayerNormBackward(ConstValues x, const float* gamma, float eps, ConstValues dy, Write write,
                       Values dx, float* dgamma, float* dbeta, size_t b, size_t n, float* scratch,
                       Stream& stream) {
  CISTERN_RUN_ON_GPU(LayerNormBackward, x, gamma, eps, dy, write, dx, dgamma, dbeta, b, n, scratch);
  ForType(x.type, [&]<typename T>() {
    LayerNormBackwardOf(As<T>(x), gamma, eps, As<T>(dy), write, As<T>(dx), b, n, scratch);
  });
  const size_t blocks = RowBlocks(b);
  AddPartials(scratch, blocks, n, dgamma);
  AddPartials(scratch + blocks * n, blocks, n, dbeta);
}

// The GPU keeps the statistics of each row, too.
size_t LayerNormScratchFloats(size_t b, size_t n) {
  return 2 * RowBlocks(b) * n + 2 * b;
}

}  // namespace cistern::op
