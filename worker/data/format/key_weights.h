// Weights of keys: in memory they lie beside the keys (SparseColumn::weights).
//
// The formats have no place for them. In files, each input whose keys have weights has a second
// one, after all inputs, with as many slots: the keys of a slot there are the bits of the weights,
// as floats, of the keys in the same slot of the input. It is empty if all of them are 1. A program
// that knows nothing of weights sees other numbers of slots, and refuses the file. Norm and Raw
// files hold such inputs; readers of Parquet files and tar shards make them of numbers.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

// Whether the keys of some input have weights.
bool HasKeyWeights(const SampleShape& shape);

// The shape that a file of such samples has: with a second input for each one with weights. Its
// key_weights are those of `shape`, for messages.
SampleShape ShapeInFiles(const SampleShape& shape);
// Of a shape, or of a ShapeInFiles: the number of slots that hold keys, and of those that hold
// weights.
uint64_t KeySlots(const SampleShape& stored);
uint64_t WeightSlots(const SampleShape& shape);

inline uint32_t BitsOf(float weight) {
  return std::bit_cast<uint32_t>(weight);
}
bool AreAllOne(absl::Span<const float> weights);

// Reads samples of `shape` from a reader of ShapeInFiles(shape). kDataLoss names file, record and
// slot: other numbers of weights than keys, or a weight that is not finite; the samples before it
// are appended.
std::unique_ptr<SampleReader> OpenWithKeyWeights(std::unique_ptr<SampleReader> reader,
                                                 const SampleShape& shape);

}  // namespace cistern::data
