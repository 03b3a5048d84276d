#include "cuda/op/dense/dot_interaction.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/float_row.h"
#include "cuda/op/primitive/vector_cpu.h"

namespace cistern::op {

namespace gpu {  // dot_interaction.cu
decltype(op::DotInteraction) DotInteraction;
decltype(op::DotInteractionBackward) DotInteractionBackward;
}  // namespace gpu

namespace {

// The vectors of one sample: vector 0 is the mlp's, vector 1 the first slot's.
struct Vectors {
  const float* mlp;
  const float* embedding;
  size_t dim;
  const float* at(size_t i) const { return i == 0 ? mlp : embedding + (i - 1) * dim; }
};

// The index of pair (i, j), i > j, among the pairs.
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

namespace {

template <typename T>
void DotInteractionForwardOf(const T* mlp, const T* embedding, T* y, size_t b, size_t slots,
                             size_t dim) {
  const size_t columns = DotInteractionColumns(slots, dim);
  ForPieces(b, RowGrain(slots * columns), Cost(b, slots, dim), [=](size_t begin, size_t end) {
    FloatRow<T> mlp_row(dim), embedding_row(slots * dim);
    for (size_t r = begin; r < end; ++r) {
      const Vectors in = {mlp_row.Read(mlp + r * dim),
                          embedding_row.Read(embedding + r * slots * dim), dim};
      T* out = y + r * columns;
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

// The destination of a gradient; may be null.
template <typename T>
struct Gradient {
  T* to;
  Write write;
};

template <typename T>
void DotInteractionBackwardOf(const T* mlp, const T* embedding, const T* dy,
                              const Gradient<T>& dmlp, const Gradient<T>& dembedding, size_t b,
                              size_t slots, size_t dim) {
  const size_t columns = DotInteractionColumns(slots, dim);
  ForPieces(b, RowGrain(slots * columns), 2 * Cost(b, slots, dim), [=](size_t begin, size_t end) {
    FloatRow<T> mlp_row(dim), embedding_row(slots * dim), grad_row(columns), out_row(dim);
    for (size_t r = begin; r < end; ++r) {
      const Vectors in = {mlp_row.Read(mlp + r * dim),
                          embedding_row.Read(embedding + r * slots * dim), dim};
      const float* grad = grad_row.Read(dy + r * columns);
      const float* pairs = grad + dim;
      const auto add_pairs = [&](size_t i, Write write, float* out) {
        if (write == Write::kOverwrite) std::fill_n(out, dim, 0.0f);
        for (size_t j = 0; j <= slots; ++j) {
          if (j == i) continue;
          AddScaled(in.at(j), pairs[i > j ? PairIndex(i, j) : PairIndex(j, i)], out, dim);
        }
      };
      if (dmlp.to != nullptr) {
        float* out = out_row.Open(dmlp.to + r * dim, dmlp.write);
        add_pairs(0, dmlp.write, out);
        AddScaled(grad, 1.0f, out, dim);
        out_row.Close(dmlp.to + r * dim);
      }
      if (dembedding.to == nullptr) continue;
      for (size_t s = 0; s < slots; ++s) {
        T* to = dembedding.to + (r * slots + s) * dim;
        add_pairs(s + 1, dembedding.write, out_row.Open(to, dembedding.write));
        out_row.Close(to);
      }
    }
  });
}

}  // namespace

void DotInteraction(ConstValues mlp, ConstValues embedding, Values y, size_t b, size_t slots,
                    size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(DotInteraction, mlp, embedding, y, b, slots, dim);
  ForType(y.type, [&]<typename T>() {
    DotInteractionForwardOf(As<T>(mlp), As<T>(embedding), As<T>(y), b, slots, dim);
  });
}

void DotInteractionBackward(ConstValues mlp, ConstValues embedding, ConstValues dy, Write mlp_write,
                            Values dmlp, Write embedding_write, Values dembedding, size_t b,
                            size_t slots, size_t dim, Stream& stream) {
  CISTERN_RUN_ON_GPU(DotInteractionBackward, mlp, embedding, dy, mlp_write, dmlp, embedding_write,
                     dembedding, b, slots, dim);
  ForType(dy.type, [&]<typename T>() {
    DotInteractionBackwardOf<T>(As<T>(mlp), As<T>(embedding), As<T>(dy), {As<T>(dmlp), mlp_write},
                                {As<T>(dembedding), embedding_write}, b, slots, dim);
  });
}

}  // namespace cistern::op
