#include "cuda/op/embedding/weighted_pool.h"

#include <algorithm>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"

namespace cistern::op {

namespace gpu {  // weighted_pool.cu
decltype(op::WeightedPool) WeightedPool;
decltype(op::WeightedPoolBackward) WeightedPoolBackward;
}  // namespace gpu

namespace {

template <typename T>
void AddScaled(const T* from, float factor, float* to, size_t dim) {
#pragma omp simd
  for (size_t e = 0; e < dim; ++e) to[e] += factor * static_cast<float>(from[e]);
}

template <typename T>
void WeightedPoolOf(const float* weights, size_t stride, const uint32_t* rows, const float* factors,
                    const uint32_t* offsets, T* out, size_t out_stride, size_t b, size_t slots,
                    size_t dim) {
  ForPieces(b, RowGrain(slots * dim), 4 * b * slots * dim, [=](size_t begin, size_t end) {
    FloatRow<T> out_row(dim);
    for (size_t i = begin; i < end; ++i) {
      for (size_t s = 0; s < slots; ++s) {
        T* const at = out + i * out_stride + s * dim;
        float* const sum = out_row.Open(at, Write::kOverwrite);
        std::fill_n(sum, dim, 0.0f);
        for (size_t j = offsets[i * slots + s]; j < offsets[i * slots + s + 1]; ++j) {
          AddScaled(weights + rows[j] * stride, factors[j], sum, dim);
        }
        out_row.Close(at);
      }
    }
  });
}

template <typename T>
void WeightedBackwardOf(const T* dout, size_t dout_stride, const float* factors,
                        const uint32_t* segment_offsets, const uint32_t* segment_outputs,
                        const uint32_t* segment_places, float* grads, size_t distinct, size_t slots,
                        size_t dim) {
  const size_t occurrences = segment_offsets[distinct];
  // As in EmbeddingPoolBackward: a row belongs to the piece with its first occurrence.
  const size_t grain = std::max<size_t>(16, RowGrain(dim));
  ForPieces(occurrences, grain, 4 * occurrences * dim, [=](size_t begin, size_t end) {
    const uint32_t* const last = segment_offsets + distinct;
    size_t i = std::lower_bound(segment_offsets, last, begin) - segment_offsets;
    for (; i < distinct && segment_offsets[i] < end; ++i) {
      float* const sum = grads + i * dim;
      std::fill_n(sum, dim, 0.0f);
      for (size_t j = segment_offsets[i]; j < segment_offsets[i + 1]; ++j) {
        const size_t o = segment_outputs[j];
        AddScaled(dout + o / slots * dout_stride + o % slots * dim, factors[segment_places[j]], sum,
                  dim);
      }
    }
  });
}

}  // namespace

void WeightedPool(const float* weights, size_t stride, const uint32_t* rows, const float* factors,
                  const uint32_t* offsets, Values out, size_t out_stride, size_t b, size_t slots,
                  size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(WeightedPool, weights, stride, rows, factors, offsets, out, out_stride, b,
                     slots, dim);
  if (b == 0 || slots == 0) return;
  ForType(out.type, [&]<typename T>() {
    WeightedPoolOf(weights, stride, rows, factors, offsets, As<T>(out), out_stride, b, slots, dim);
  });
}

void WeightedPoolBackward(ConstValues dout, size_t dout_stride, const float* factors,
                          const uint32_t* segment_offsets, const uint32_t* segment_outputs,
                          const uint32_t* segment_places, float* grads, size_t distinct,
                          size_t slots, size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(WeightedPoolBackward, dout, dout_stride, factors, segment_offsets,
                     segment_outputs, segment_places, grads, distinct, slots, dim);
  if (distinct == 0) return;
  ForType(dout.type, [&]<typename T>() {
    WeightedBackwardOf(As<T>(dout), dout_stride, factors, segment_offsets, segment_outputs,
                       segment_places, grads, distinct, slots, dim);
  });
}

}  // namespace cistern::op
