#include "python/rows/pooling.h"

#include <algorithm>

namespace cistern {
namespace {

float FactorOf(const Occurrences& batch, uint32_t occurrence) {
  return batch.factors.empty() ? 1.0f : batch.factors[occurrence];
}

float ScaleOf(const Occurrences& batch, size_t output, bool mean) {
  const uint32_t count = batch.offsets[output + 1] - batch.offsets[output];
  return mean && count > 1 ? 1.0f / static_cast<float>(count) : 1.0f;
}

}  // namespace

void PoolRows(const Occurrences& batch, bool mean, uint32_t dim, const float* rows, float* out) {
  std::fill_n(out, batch.outputs() * dim, 0.0f);
  for (size_t i = 0; i < batch.outputs(); ++i, out += dim) {
    for (uint32_t j = batch.offsets[i]; j < batch.offsets[i + 1]; ++j) {
      const float* row = rows + size_t{batch.places[j]} * dim;
      const float factor = FactorOf(batch, j);
      for (uint32_t k = 0; k < dim; ++k) out[k] += factor * row[k];
    }
    const float scale = ScaleOf(batch, i, mean);
    if (scale == 1.0f) continue;
    for (uint32_t k = 0; k < dim; ++k) out[k] *= scale;
  }
}

void PoolRowsBackward(const Occurrences& batch, bool mean, uint32_t dim, const float* out_grads,
                      size_t row_num, float* grads) {
  std::fill_n(grads, row_num * dim, 0.0f);
  for (size_t i = 0; i < batch.outputs(); ++i, out_grads += dim) {
    const float scale = ScaleOf(batch, i, mean);
    for (uint32_t j = batch.offsets[i]; j < batch.offsets[i + 1]; ++j) {
      float* grad = grads + size_t{batch.places[j]} * dim;
      const float factor = scale * FactorOf(batch, j);
      for (uint32_t k = 0; k < dim; ++k) grad[k] += factor * out_grads[k];
    }
  }
}

}  // namespace cistern
