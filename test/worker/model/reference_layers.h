// The forward pass of each dense layer type in double: the formulas with which the tests compare
// layers.
//
// A new type is a row of FlatFormulas (reference_layers.cc), or of SequenceFormulas
// (reference_sequence_layers.cc) if its tensors have three dimensions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "worker/model/layer/layer_configs.h"

namespace cistern::model {

// A matrix per sample block: [rows * batch, columns], row-major. A tensor of three dimensions [rows
// * batch, columns / last, last] has `last`; 0: it has two.
struct ReferenceTensor {
  size_t columns = 0;
  std::vector<double> values;
  size_t last = 0;
  size_t rows() const { return columns == 0 ? 0 : values.size() / columns; }
};

// [rows, columns] of zeros.
inline ReferenceTensor MakeReferenceTensor(size_t rows, size_t columns) {
  return {columns, std::vector<double>(rows * columns), 0};
}

// Numbers that the layers of a model take in their order.
struct ReferenceParameters {
  const double* next = nullptr;
  const double* Take(size_t count) {
    next += count;
    return next - count;
  }
};

// One layer in a step.
struct ReferenceCall {
  const LayerConfig& layer;
  std::vector<const ReferenceTensor*> in;
  std::vector<ReferenceTensor*> out;
  size_t batch;        // samples
  bool predicts;       // without dropout, with running statistics
  uint64_t seed;       // of its random draws
  uint64_t sequence;   // of its draw in this step
  size_t vector_size;  // of in[0], if that is an embedding
  ReferenceParameters& weights;
  ReferenceParameters& running;  // BatchNorm's statistics

  template <typename Config>
  const Config& own() const {
    return layer.own<Config>();
  }
  const ReferenceTensor& x() const { return *in[0]; }
  ReferenceTensor& y() const { return *out[0]; }
};

struct ReferenceFormula {
  const char* type;
  void (*compute)(const ReferenceCall& call);
};

absl::Span<const ReferenceFormula> FlatFormulas();
absl::Span<const ReferenceFormula> SequenceFormulas();

// Null: no row for this type.
const ReferenceFormula* FindReferenceFormula(const std::string& type);

}  // namespace cistern::model
