// The steps from samples to the batches of a pass: keys become rows, samples change places,
// occurrences are sorted for the backward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "worker/data/format/sample_block.h"
#include "worker/data/source/batch.h"

namespace cistern {

// Bytes that `block` takes as a batch, at most; `segments`: with its segment arrays. (One with keys
// in their place takes less; both count the same, so that passes are cut alike on all devices.)
size_t BatchBytes(const SampleBlock& block, bool segments);

// Makes a batch of `block`, whose memory it takes, without rows or keys. (One of no sample does not
// know its slots.)
Batch MakeBatch(SampleBlock&& block);

// Puts the samples of all batches into an order that is a pure function of (seed, stream); sizes of
// batches stay. All batches but the last have the same size.
void ShuffleSamples(uint64_t seed, uint64_t stream, std::vector<Batch>* batches);

// Fills the segment arrays of batches.
//
// Threads: one at a time.
class SegmentBuilder {
 public:
  void Build(Batch* batch);
  void Build(SparseBatch* sparse);

 private:
  void Sort(Row row_max);

  // (row << 32 | output) of each occurrence, and room to sort.
  std::vector<uint64_t> occurrences_, scratch_;
};

}  // namespace cistern
