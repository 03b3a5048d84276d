// Embedding lookup where each occurrence of a row has a factor (the weight of a key); and its
// backward. Rows, outputs and segments are those of embedding_pool.h.
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// out(o) = sum over i in [offsets[o], offsets[o + 1]) of factors[i] times the weights of rows[i],
// in that order. An output without rows is zero. A weighted mean is the sum whose factors are
// weights divided by their sum (HostSparseBatch::shares).
//
// factors: as rows. The others: as in EmbeddingPool.
void WeightedPool(const float* weights, size_t stride, const uint32_t* rows, const float* factors,
                  const uint32_t* offsets, Values out, size_t out_stride, size_t b, size_t slots,
                  size_t dim, Stream& stream);

// grads(i) = sum of factors[p] * dout(o) over the occurrences of distinct row i, in that order: o
// is segment_outputs[j] and p is segment_places[j], for j in [segment_offsets[i],
// segment_offsets[i + 1]).
//
// segment_places: [occurrences], into factors. The others: as in EmbeddingPoolBackward.
void WeightedPoolBackward(ConstValues dout, size_t dout_stride, const float* factors,
                          const uint32_t* segment_offsets, const uint32_t* segment_outputs,
                          const uint32_t* segment_places, float* grads, size_t distinct,
                          size_t slots, size_t dim, Stream& stream);

}  // namespace cistern::op
