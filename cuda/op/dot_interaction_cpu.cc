#include "cuda/op/dot_interaction.h"

#include "cuda/op/cpu.h"
#include "cuda/op/vector_cpu.h"

namespace cistern::op {

namespace gpu {  // dot_interaction.cu
decltype(op::DotInteraction) DotInteraction;
decltype(op::DotInteractionBackward) DotInteractionBackward;
}  // namespace gpu

namespace {

// The vectors of one sample: number 0 is the mlp's, number 1 the first slot's.
template <typename Float>
struct Vectors {
  Float* mlp;
  Float* embedding;
  size_t dim;
  Float* at(size_t i) const { return i == 0 ? mlp : embedding + (i - 1) * dim; }
};

// Where pair (i, j), i > j, lies among the pairs.
size_t PairIndex(size_t i, size_t j) {
  return i * (i - 1) / 2 + j;
}

size_t Cost(size_t b, size_t slots, size_t dim) {
  return b * DotInteractionColumns(slots, dim) * dim;
}

}  // namespace

size_t DotInteractionColumns(size_t slots, size_t dim) {
  return dim + PairIndex(slots + 1, 0) + 1;
}

void DotInteraction(const float* mlp, const float* embedding, float* y, size_t b, size_t slots,
                    size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(DotInteraction, mlp, embedding, y, b, slots, dim);
  const size_t columns = DotInteractionColumns(slots, dim);
  ForPieces(b, RowGrain(slots * columns), Cost(b, slots, dim), [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const Vectors<const float> in = {mlp + r * dim, embedding + r * slots * dim, dim};
      float* out = y + r * columns;
      std::copy_n(in.mlp, dim, out);
      for (size_t i = 1; i <= slots; ++i) {
        for (size_t j = 0; j < i; ++j) {
          out[dim + PairIndex(i, j)] = Dot(in.at(i), in.at(j), dim);
        }
      }
      out[columns - 1] = 0.0f;
    }
  });
}

void DotInteractionBackward(const float* mlp, const float* embedding, const float* dy,
                            Write mlp_write, float* dmlp, Write embedding_write, float* dembedding,
                            size_t b, size_t slots, size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(DotInteractionBackward, mlp, embedding, dy, mlp_write, dmlp, embedding_write,
                     dembedding, b, slots, dim);
  const size_t columns = DotInteractionColumns(slots, dim);
  ForPieces(b, RowGrain(slots * columns), 2 * Cost(b, slots, dim), [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const Vectors<const float> in = {mlp + r * dim, embedding + r * slots * dim, dim};
      const float* pairs = dy + r * columns + dim;
      const auto add_pairs = [&](size_t i, Write write, float* out) {
        if (write == Write::kOverwrite) std::fill_n(out, dim, 0.0f);
        for (size_t j = 0; j <= slots; ++j) {
          if (j == i) continue;
          AddScaled(in.at(j), pairs[i > j ? PairIndex(i, j) : PairIndex(j, i)], out, dim);
        }
      };
      if (dmlp != nullptr) {
        add_pairs(0, mlp_write, dmlp + r * dim);
        AddScaled(dy + r * columns, 1.0f, dmlp + r * dim, dim);
      }
      if (dembedding == nullptr) continue;
      for (size_t s = 0; s < slots; ++s) {
        add_pairs(s + 1, embedding_write, dembedding + (r * slots + s) * dim);
      }
    }
  });
}

}  // namespace cistern::op
