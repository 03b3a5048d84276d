#include "cuda/op/embedding/embedding_pool.h"

#include <type_traits>

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"

namespace cistern::op {

namespace gpu {  // embedding_pool.cu
decltype(op::EmbeddingPool) EmbeddingPool;
decltype(op::EmbeddingPoolBackward) EmbeddingPoolBackward;
}  // namespace gpu

namespace {

// Prefetch distance in occurrences: row accesses are random in a table that may be far larger than
// the cache.
constexpr size_t kAhead = 16;

template <typename T>
inline void PrefetchRow(const T* row, size_t dim) {
  constexpr size_t kLine = 64 / sizeof(T);
  for (size_t c = 0; c < dim; c += kLine) __builtin_prefetch(row + c);
}

template <typename T>
inline void AddRow(const T* from, float factor, float* to, size_t dim) {
#pragma omp simd
  for (size_t e = 0; e < dim; ++e) to[e] += factor * from[e];
}

// Calls body with `dim`, as a constant if it is a common one: a row of 16 floats is two registers,
// and a loop over it costs more than its work.
template <typename Body>
void ForDim(size_t dim, const Body& body) {
  switch (dim) {
    case 8:
      return body(std::integral_constant<size_t, 8>());
    case 16:
      return body(std::integral_constant<size_t, 16>());
    case 32:
      return body(std::integral_constant<size_t, 32>());
    case 64:
      return body(std::integral_constant<size_t, 64>());
    default:
      return body(dim);
  }
}

// The factor of an output that pools `count` rows.
inline float PoolFactor(Pool pool, size_t count) {
  return pool == Pool::kMean && count > 1 ? 1.0f / static_cast<float>(count) : 1.0f;
}

// The number of outputs per piece: about kElementGrain floats.
size_t OutputGrain(size_t dim) {
  return std::max<size_t>(16, RowGrain(dim));
}

// Dim: size_t or a constant.
template <typename T, typename Dim>
void PoolOf(const float* weights, size_t stride, const uint32_t* rows, const uint32_t* offsets,
            Pool pool, T* out, size_t out_stride, size_t b, size_t slots, Dim dim) {
  const size_t last = offsets[b * slots];
  ForPieces(b, RowGrain(slots * dim), 4 * b * slots * dim, [=](size_t begin, size_t end) {
    FloatRow<T> out_row(dim);
    for (size_t i = begin; i < end; ++i) {
      for (size_t s = 0; s < slots; ++s) {
        const size_t from = offsets[i * slots + s], to = offsets[i * slots + s + 1];
        float* sum = out_row.Open(out + i * out_stride + s * dim, Write::kOverwrite);
        for (size_t j = from; j < to; ++j) {
          if (j + kAhead < last) PrefetchRow(weights + rows[j + kAhead] * stride, dim);
          const float* row = weights + rows[j] * stride;
          if (j == from) {
#pragma omp simd
            for (size_t e = 0; e < dim; ++e) sum[e] = row[e];
          } else {
            AddRow(row, 1.0f, sum, dim);
          }
        }
        if (from == to) std::fill_n(sum, dim, 0.0f);
        const float factor = PoolFactor(pool, to - from);
        if (factor != 1.0f) {
#pragma omp simd
          for (size_t e = 0; e < dim; ++e) sum[e] *= factor;
        }
        out_row.Close(out + i * out_stride + s * dim);
      }
    }
  });
}

// row_of(o): the gradient of output o. Dim: as PoolOf.
template <typename RowOf, typename Dim>
void BackwardOf(const RowOf& row_of, const uint32_t* offsets, Pool pool,
                const uint32_t* segment_offsets, const uint32_t* segment_outputs, float* grads,
                size_t distinct, Dim dim) {
  const size_t occurrences = segment_offsets[distinct];
  const auto add = [=](size_t j, float* sum) {
    if (j + kAhead < occurrences) PrefetchRow(row_of(segment_outputs[j + kAhead]), dim);
    const size_t o = segment_outputs[j];
    const float factor = pool == Pool::kMean ? PoolFactor(pool, offsets[o + 1] - offsets[o]) : 1.0f;
    AddRow(row_of(o), factor, sum, dim);
  };
  // Occurrence counts are highly skewed, so pieces have equal numbers of occurrences: a row belongs
  // to the piece with its first occurrence.
  ForPieces(occurrences, OutputGrain(dim), 4 * occurrences * dim, [=](size_t begin, size_t end) {
    const uint32_t* last = segment_offsets + distinct;
    size_t i = std::lower_bound(segment_offsets, last, begin) - segment_offsets;
    for (; i < distinct && segment_offsets[i] < end; ++i) {
      float* sum = grads + i * dim;
      std::fill_n(sum, dim, 0.0f);
      for (size_t j = segment_offsets[i]; j < segment_offsets[i + 1]; ++j) add(j, sum);
    }
  });
}

double GradientSquares(const float* x, size_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace

void EmbeddingPool(const float* weights, size_t stride, const uint32_t* rows,
                   const uint32_t* offsets, Pool pool, Values out, size_t out_stride, size_t b,
                   size_t slots, size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(EmbeddingPool, weights, stride, rows, offsets, pool, out, out_stride, b, slots,
                     dim);
  if (b == 0 || slots == 0) return;
  ForType(out.type, [&]<typename T>() {
    ForDim(dim, [&](auto fixed) {
      PoolOf(weights, stride, rows, offsets, pool, As<T>(out), out_stride, b, slots, fixed);
    });
  });
}

size_t EmbeddingPoolBackwardScratchFloats(size_t occurrences, size_t distinct, size_t dim) {
  const size_t chunks = SegmentChunksMax(occurrences, distinct);
  // The counts and lists of chunks and of rows, aligned to 16 bytes, and the sums of the chunks.
  const size_t lists = 4 + 4 * ((chunks + 1) / 2 + (occurrences / kSegmentChunk + 1) / 2);
  return SquarePartsFloats(distinct) + lists + chunks * dim;
}

void EmbeddingPoolBackward(ConstValues dout, size_t dout_stride, const uint32_t* offsets, Pool pool,
                           const uint32_t* segment_offsets, const uint32_t* segment_outputs,
                           size_t occurrences, float* grads, double* square_sum, size_t distinct,
                           size_t slots, size_t dim, float* scratch, Stream& stream) {
  CISTERN_RUN_ON_GPU(EmbeddingPoolBackward, dout, dout_stride, offsets, pool, segment_offsets,
                     segment_outputs, occurrences, grads, square_sum, distinct, slots, dim,
                     scratch);
  if (distinct > 0) {
    ForType(dout.type, [&]<typename T>() {
      const T* const first = As<T>(dout);
      ForDim(dim, [&](auto fixed) {
        const auto backward = [&](const auto& row_of) {
          BackwardOf(row_of, offsets, pool, segment_offsets, segment_outputs, grads, distinct,
                     fixed);
        };
        // Adjacent outputs need no division, which takes as long as adding a row.
        if (dout_stride == slots * dim) {
          backward([=](size_t o) { return first + o * fixed; });
        } else {
          backward([=](size_t o) { return first + o / slots * dout_stride + o % slots * fixed; });
        }
      });
    });
  }
  if (square_sum != nullptr) *square_sum = GradientSquares(grads, distinct * dim);
}

}  // namespace cistern::op
