// Embedding lookup: sums or averages the rows of each (sample, slot) of a batch; and its backward.
//
// Rows and segments are those of a HostSparseBatch (worker/data/source/batch.h), as plain arrays.
// An output is the pooled vector of one (sample, slot); output o belongs to sample o / slots and
// slot o % slots.
#pragma once

#include <algorithm>

#include "cuda/op/primitive/op.h"

namespace cistern::op {

enum class Pool { kSum, kMean };

// out(o) = sum over i in [offsets[o], offsets[o + 1]) of the weights of rows[i], in that order;
// kMean divides by the number of rows. An output without rows is zero.
//
// weights: the first weight of row 0; row r begins at weights + r * stride. dim weights per row.
// rows: [offsets[b * slots]]. offsets: [b * slots + 1]; offsets[0] may be any index in rows.
// out: output o begins at out + (o / slots) * out_stride + (o % slots) * dim, with out_stride at
// least slots * dim: the vectors may be written into a wider matrix, whose other columns are not
// changed.
void EmbeddingPool(const float* weights, size_t stride, const uint32_t* rows,
                   const uint32_t* offsets, Pool pool, Values out, size_t out_stride, size_t b,
                   size_t slots, size_t dim, Stream& stream);

// A GPU sums the segment of a row with more occurrences than kLongSegment in chunks of at most
// kSegmentChunk. The same threads sum four neighbouring shorter ones, one after the other: if these
// were longer, the kernel would wait for the longest of them.
inline constexpr uint32_t kLongSegment = 64, kSegmentChunk = 512;
// The largest number of these chunks.
inline size_t SegmentChunksMax(size_t occurrences, size_t distinct) {
  return occurrences / kSegmentChunk + std::min(distinct, occurrences / (kLongSegment + 1));
}

// The scratch of a GPU's partial sums of squares: one double for 32 rows or more, and a multiple of
// 16 bytes.
inline size_t SquarePartsFloats(size_t distinct) {
  return 4 * (distinct / 64 + 1);
}

// grads(i) = sum of dout(o) over the outputs o in which distinct row i occurs, which are
// segment_outputs[segment_offsets[i] .. segment_offsets[i + 1]), in that order. A GPU cuts a long
// segment into parts that depend only on its length, and adds their sums as a tree. With kMean
// dout(o) is first divided by the number of rows of o.
//
// dout: as out, with dout_stride. offsets: as above, read with kMean only.
// segment_offsets: [distinct + 1], from 0, strictly ascending. segment_outputs: [occurrences].
// grads: [distinct, dim], overwritten; grads(i) belongs to row segment_rows[i] of the batch.
// square_sum: overwritten with the sum of the squares of grads; null: not wanted. A GPU makes it
// without reading grads again.
// scratch: [EmbeddingPoolBackwardScratchFloats(occurrences, distinct, dim)], aligned to 16 bytes;
// the CPU needs none.
size_t EmbeddingPoolBackwardScratchFloats(size_t occurrences, size_t distinct, size_t dim);
void EmbeddingPoolBackward(ConstValues dout, size_t dout_stride, const uint32_t* offsets, Pool pool,
                           const uint32_t* segment_offsets, const uint32_t* segment_outputs,
                           size_t occurrences, float* grads, double* square_sum, size_t distinct,
                           size_t slots, size_t dim, float* scratch, Stream& stream);

}  // namespace cistern::op
