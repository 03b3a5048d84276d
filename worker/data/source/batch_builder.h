// The steps from samples to the batches of a pass: makes batches, shuffles samples, and sorts
// occurrences for the backward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "worker/data/format/sample_block.h"
#include "worker/data/source/batch.h"

namespace cistern::data {

// Upper bound of the bytes of `block` as a batch; segments: includes the segment arrays. A batch
// that holds keys instead takes less, but counts the same, so that all devices cut the same passes.
size_t BatchBytes(const SampleBlock& block, bool segments);

// Gives back memory that `values` does not use, unless it is so little (a sixteenth) that copying
// the values would cost more.
template <typename T>
void ReturnSlack(std::vector<T>* values) {
  if (values->capacity() - values->size() > values->size() / 16) values->shrink_to_fit();
}

// Turns `block` into a batch without rows or keys; reuses its memory. A batch without samples has
// slot_num 0.
HostBatch MakeHostBatch(SampleBlock&& block);

// Each weight divided by the sum of the weights of its output, in double: the factors of a weighted
// mean. 0 where that sum is 0. offsets: [outputs + 1], into weights.
std::vector<float> SharesOf(absl::Span<const uint32_t> offsets, absl::Span<const float> weights);

// Shuffles the samples of all batches, as a pure function of (seed, stream). Batches keep their
// sizes.
void ShuffleSamples(uint64_t seed, uint64_t stream, std::vector<HostBatch>* batches);

// Fills the segment arrays of batches.
//
// Threads: one at a time.
class SegmentBuilder {
 public:
  void Build(HostBatch* batch);
  void Build(HostSparseBatch* sparse);

 private:
  void Sort(Row row_max);

  // (row << 32 | output) of each occurrence, and a buffer for the sort. If the keys have weights,
  // its place stands for the output: the order is the same.
  std::vector<uint64_t> occurrences_, scratch_;
  std::vector<uint32_t> outputs_;  // of each occurrence, if the keys have weights
};

}  // namespace cistern::data
