#include "cuda/op/dense/batch_norm.h"

#include <cmath>

#include "common/base/check.h"
#include "cuda/op/dense/dropout_cpu.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // batch_norm.cu
decltype(op::BatchNormStatistics) BatchNormStatistics;
decltype(op::BatchNormForward) BatchNormForward;
decltype(op::BatchNormBackward) BatchNormBackward;
decltype(op::BatchNormInference) BatchNormInference;
}  // namespace gpu

namespace {

size_t RowsOfBlock(size_t block, size_t b) {
  return std::min(kRowsPerBlock, b - block * kRowsPerBlock);
}

// Mean and centered sum of squares of each column of x [rows, n]. The columns are read twice, while
// the block is in cache: centered sums avoid cancellation.
template <typename T>
void BlockMoments(const T* x, size_t rows, size_t n, float* mean, float* m2) {
  std::fill_n(mean, n, 0.0f);
  std::fill_n(m2, n, 0.0f);
  for (size_t r = 0; r < rows; ++r) {
    const T* row = x + r * n;
#pragma omp simd
    for (size_t c = 0; c < n; ++c) mean[c] += row[c];
  }
  const float share = 1.0f / static_cast<float>(rows);
  for (size_t c = 0; c < n; ++c) mean[c] *= share;
  for (size_t r = 0; r < rows; ++r) {
    const T* row = x + r * n;
#pragma omp simd
    for (size_t c = 0; c < n; ++c) m2[c] += (row[c] - mean[c]) * (row[c] - mean[c]);
  }
}

struct Moments {
  double mean[kColumnChunk], m2[kColumnChunk];
};

// Combines the moments of the blocks for columns [begin, end) (Chan, Golub and LeVeque, 1979).
void JoinMoments(const float* means, const float* m2s, size_t b, size_t n, size_t begin, size_t end,
                 Moments* out) {
  const size_t width = end - begin, blocks = RowBlocks(b);
  std::fill_n(out->mean, width, 0.0);
  std::fill_n(out->m2, width, 0.0);
  for (size_t k = 0; k < blocks; ++k) {
    const double share = static_cast<double>(RowsOfBlock(k, b)) / static_cast<double>(b);
    const float* mean = means + k * n + begin;
    for (size_t c = 0; c < width; ++c) out->mean[c] += share * mean[c];
  }
  for (size_t k = 0; k < blocks; ++k) {
    const double rows = static_cast<double>(RowsOfBlock(k, b));
    const float* mean = means + k * n + begin;
    const float* m2 = m2s + k * n + begin;
    for (size_t c = 0; c < width; ++c) {
      const double shift = mean[c] - out->mean[c];
      out->m2[c] += m2[c] + rows * shift * shift;
    }
  }
}

// The inputs of the backward pass for one piece of x, y and dy.
template <typename T>
struct Operands {
  const T *x, *y, *dy;
};

template <bool kRelu, typename T>
inline float BehindEpilogue(const Operands<T>& in, size_t i, float scale) {
  if constexpr (kRelu) return BehindRelu(in.y[i], in.dy[i], scale);
  return in.dy[i];
}

// dbeta = sum of dz, dgamma = sum of dz (x - mean), over rows [begin, end).
template <bool kRelu, typename T>
void BlockGradients(const Operands<T>& in, const float* mean, float scale, size_t begin, size_t end,
                    size_t n, float* dgamma, float* dbeta) {
  std::fill_n(dgamma, n, 0.0f);
  std::fill_n(dbeta, n, 0.0f);
  for (size_t r = begin; r < end; ++r) {
    const Operands<T> row = {in.x + r * n, kRelu ? in.y + r * n : nullptr, in.dy + r * n};
#pragma omp simd
    for (size_t c = 0; c < n; ++c) {
      const float dz = BehindEpilogue<kRelu>(row, c, scale);
      dbeta[c] += dz;
      dgamma[c] += dz * (row.x[c] - mean[c]);
    }
  }
}

// dx = a dz - shift - slope (x - mean), with the factors of each column in `factor` [3, n].
template <bool kRelu, typename T>
void InputGradient(const Operands<T>& in, const float* mean, const float* factor, float scale,
                   Write write, T* dx, size_t begin, size_t end, size_t n) {
  const float *a = factor, *shift = factor + n, *slope = factor + 2 * n;
  for (size_t r = begin; r < end; ++r) {
    const Operands<T> row = {in.x + r * n, kRelu ? in.y + r * n : nullptr, in.dy + r * n};
    T* out = dx + r * n;
    if (write == Write::kOverwrite) {
#pragma omp simd
      for (size_t c = 0; c < n; ++c) {
        const float dz = BehindEpilogue<kRelu>(row, c, scale);
        out[c] = a[c] * dz - shift[c] - slope[c] * (row.x[c] - mean[c]);
      }
    } else {
#pragma omp simd
      for (size_t c = 0; c < n; ++c) {
        const float dz = BehindEpilogue<kRelu>(row, c, scale);
        out[c] += a[c] * dz - shift[c] - slope[c] * (row.x[c] - mean[c]);
      }
    }
  }
}

template <bool kRelu, typename T>
void Backward(const Operands<T>& in, const float* mean, const float* inv_std, const float* gamma,
              float scale, Write write, T* dx, float* dgamma, float* dbeta, size_t b, size_t n,
              float* scratch) {
  const size_t blocks = RowBlocks(b);
  float *dgammas = scratch, *dbetas = scratch + blocks * n, *factor = scratch + 2 * blocks * n;
  ForPieces(b, kRowsPerBlock, 3 * b * n, [=](size_t begin, size_t end) {
    const size_t k = begin / kRowsPerBlock;
    BlockGradients<kRelu>(in, mean, scale, begin, end, n, dgammas + k * n, dbetas + k * n);
  });
  AddPartials(dgammas, blocks, n, dgamma);
  AddPartials(dbetas, blocks, n, dbeta);
  const float share = b == 0 ? 0.0f : 1.0f / static_cast<float>(b);
  for (size_t c = 0; c < n; ++c) {
    dgamma[c] *= inv_std[c];
    const float a = gamma[c] * inv_std[c];
    factor[c] = a;
    factor[n + c] = a * dbeta[c] * share;
    factor[2 * n + c] = a * dgamma[c] * share * inv_std[c];
  }
  if (dx == nullptr) return;
  ForPieces(b, RowGrain(n), 4 * b * n, [=](size_t begin, size_t end) {
    InputGradient<kRelu>(in, mean, factor, scale, write, dx, begin, end, n);
  });
}

// One row of BatchNormForward without dropout.
template <typename T>
void NormalizeRow(const T* x, const float* mean, const float* inv_std, const float* gamma,
                  const float* beta, bool relu, T* y, size_t n) {
  const float floor = relu ? 0.0f : -INFINITY;
#pragma omp simd
  for (size_t c = 0; c < n; ++c) {
    const float z = (x[c] - mean[c]) * inv_std[c] * gamma[c] + beta[c];
    y[c] = z < floor ? floor : z;
  }
}

// Columns [first, first + width) of a row of BatchNormForward with ReLU and dropout.
template <typename T>
void NormalizeDropRow(const T* x, const float* mean, const float* inv_std, const float* gamma,
                      const float* beta, const uint16_t* half, int32_t below, float scale, T* y,
                      size_t width) {
#pragma omp simd
  for (size_t c = 0; c < width; ++c) {
    const float z = (x[c] - mean[c]) * inv_std[c] * gamma[c] + beta[c];
    y[c] = DroppedRelu(z, half[c], below, scale);
  }
}

template <typename T>
void BatchNormForwardOf(const T* x, const float* mean, const float* inv_std, const float* gamma,
                        const float* beta, const BatchNormEpilogue& epilogue, T* y, size_t b,
                        size_t n) {
  const DropoutDraw draw = epilogue.dropout;
  const bool relu = epilogue.relu;
  const int32_t below = KeepBelow(draw.rate);
  const float scale = KeepScale(draw.rate);
  ForPieces(b, RowGrain(n), 2 * b * n, [=](size_t begin, size_t end) {
    uint16_t half[kDropoutChunk];
    for (size_t r = begin; r < end; ++r) {
      const T* in = x + r * n;
      T* out = y + r * n;
      if (draw.rate == 0.0f) {
        NormalizeRow(in, mean, inv_std, gamma, beta, relu, out, n);
        continue;
      }
      for (size_t c = 0; c < n; c += kDropoutChunk) {
        const size_t width = std::min(kDropoutChunk, n - c);
        DrawHalfWords(draw, n, r, c, width, half);
        NormalizeDropRow(in + c, mean + c, inv_std + c, gamma + c, beta + c, half, below, scale,
                         out + c, width);
      }
    }
  });
}

template <typename T>
void InferenceOf(const T* x, const float* running_mean, const float* running_var, float eps,
                 const float* gamma, const float* beta, bool relu, T* y, size_t b, size_t n) {
  ForPieces(b, RowGrain(n), 2 * b * n, [=](size_t begin, size_t end) {
    float inv_std[kColumnChunk];
    for (size_t first = 0; first < n; first += kColumnChunk) {
      const size_t width = std::min(kColumnChunk, n - first);
      for (size_t c = 0; c < width; ++c) {
        inv_std[c] = 1.0f / std::sqrt(running_var[first + c] + eps);
      }
      for (size_t r = begin; r < end; ++r) {
        NormalizeRow(x + r * n + first, running_mean + first, inv_std, gamma + first, beta + first,
                     relu, y + r * n + first, width);
      }
    }
  });
}

}  // namespace

void BatchNormStatistics(ConstValues x, float factor, float eps, float* mean, float* inv_std,
                         float* running_mean, float* running_var, size_t b, size_t n,
                         float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(BatchNormStatistics, x, factor, eps, mean, inv_std, running_mean, running_var,
                     b, n, scratch);
  if (n == 0) return;
  CISTERN_CHECK(b > 0);
  float *means = scratch, *m2s = scratch + RowBlocks(b) * n;
  ForType(x.type, [&]<typename T>() {
    const T* from = As<T>(x);
    ForPieces(b, kRowsPerBlock, b * n, [=](size_t begin, size_t end) {
      const size_t k = begin / kRowsPerBlock;
      BlockMoments(from + begin * n, end - begin, n, means + k * n, m2s + k * n);
    });
  });
  const double rows = static_cast<double>(b);
  ForPieces(n, kColumnChunk, 2 * RowBlocks(b) * n, [=](size_t begin, size_t end) {
    Moments joined;
    JoinMoments(means, m2s, b, n, begin, end, &joined);
    for (size_t c = begin; c < end; ++c) {
      const double m2 = joined.m2[c - begin];
      const double unbiased = m2 / std::max(rows - 1.0, 1.0);
      mean[c] = static_cast<float>(joined.mean[c - begin]);
      inv_std[c] = static_cast<float>(1.0 / std::sqrt(m2 / rows + static_cast<double>(eps)));
      running_mean[c] = (1.0f - factor) * running_mean[c] + factor * mean[c];
      running_var[c] = (1.0f - factor) * running_var[c] + factor * static_cast<float>(unbiased);
    }
  });
}

void BatchNormForward(ConstValues x, const float* mean, const float* inv_std, const float* gamma,
                      const float* beta, const BatchNormEpilogue& epilogue, Values y, size_t b,
                      size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(BatchNormForward, x, mean, inv_std, gamma, beta, epilogue, y, b, n);
  const DropoutDraw draw = epilogue.dropout;
  CISTERN_CHECK(draw.rate >= 0.0f && draw.rate < 1.0f);
  CISTERN_CHECK(draw.rate == 0.0f || epilogue.relu);
  ForType(x.type, [&]<typename T>() {
    BatchNormForwardOf(As<T>(x), mean, inv_std, gamma, beta, epilogue, As<T>(y), b, n);
  });
}

void BatchNormBackward(ConstValues x, ConstValues y, ConstValues dy, const float* mean,
                       const float* inv_std, const float* gamma, const BatchNormEpilogue& epilogue,
                       Write dx_write, Values dx, float* dgamma, float* dbeta, size_t b, size_t n,
                       float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(BatchNormBackward, x, y, dy, mean, inv_std, gamma, epilogue, dx_write, dx,
                     dgamma, dbeta, b, n, scratch);
  const float scale = KeepScale(epilogue.dropout.rate);
  ForType(x.type, [&]<typename T>() {
    const auto backward = epilogue.relu ? Backward<true, T> : Backward<false, T>;
    backward({As<T>(x), As<T>(y), As<T>(dy)}, mean, inv_std, gamma, scale, dx_write, As<T>(dx),
             dgamma, dbeta, b, n, scratch);
  });
}

void BatchNormInference(ConstValues x, const float* running_mean, const float* running_var,
                        float eps, const float* gamma, const float* beta, bool relu, Values y,
                        size_t b, size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(BatchNormInference, x, running_mean, running_var, eps, gamma, beta, relu, y, b,
                     n);
  ForType(x.type, [&]<typename T>() {
    InferenceOf(As<T>(x), running_mean, running_var, eps, gamma, beta, relu, As<T>(y), b, n);
  });
}

size_t BatchNormScratchFloats(size_t b, size_t n) {
  return (2 * RowBlocks(b) + 3) * n;
}

}  // namespace cistern::op
