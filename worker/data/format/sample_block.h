// Samples in columns, as readers produce and the pass builder consumes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/types.h"

namespace cistern::data {

// The shape of a data set's samples, from the model's Data layer or a file's header.
struct SampleShape {
  uint32_t label_dim = 1;
  uint32_t dense_dim = 0;
  // Number of slots of each sparse input, in the order of the inputs in a sample.
  std::vector<uint32_t> slot_nums;
  // Maximum number of keys per sample in each input; 0: only the format's own limit.
  std::vector<uint32_t> max_keys;
  bool weighted = false;  // the last of label_dim labels is the weight of the sample
  // By input: whether its keys have weights. Empty: no input has any.
  std::vector<bool> key_weights = {};
  bool operator==(const SampleShape&) const = default;
};

// The keys of one sparse input, compressed by (sample, slot).
struct SparseColumn {
  std::vector<uint32_t> offsets = {0};  // [samples * slot_num + 1]
  std::vector<Key> keys;                // [offsets.back()]
  // Of each key, if the keys of the input have weights (SampleShape::key_weights); else empty.
  std::vector<float> weights;
};

// Threads: one at a time.
struct SampleBlock {
  size_t size = 0;                   // samples
  std::vector<float> label;          // [size, label_dim]
  std::vector<float> dense;          // [size, dense_dim]
  std::vector<SparseColumn> sparse;  // by input

  // Empties the block and gives it `inputs` columns; keeps the capacity.
  void Reset(size_t inputs) {
    size = 0;
    label.clear();
    dense.clear();
    sparse.resize(inputs);
    for (SparseColumn& column : sparse) {
      column.offsets.assign(1, 0);
      column.keys.clear();
      column.weights.clear();
    }
  }
  // The lengths of the arrays. A reader that appends to a block with room for them neither moves
  // values nor leaves half of the memory unused.
  struct Sizes {
    size_t label = 0, dense = 0;
    std::vector<size_t> offsets, keys;  // by input
  };
  Sizes sizes() const;
  void Reserve(const Sizes& sizes);  // the block has as many columns
  // Keeps the first `count` samples.
  void Truncate(size_t count);
  // Appends samples [first, first + count) of `from`, which has the same shape.
  void Append(const SampleBlock& from, size_t first, size_t count);
};

// Moves the last label of each sample, its weight, from `labels` to the result. labels: [samples,
// n], then [samples, n - 1].
std::vector<float> TakeWeights(size_t samples, std::vector<float>* labels);

}  // namespace cistern::data
