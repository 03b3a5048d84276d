// The second level of the shuffle: a buffer from which samples are drawn at random. (The first is
// the order of the files: DataSetOptions::shuffle_files.)
#pragma once

#include <cstdint>
#include <memory>

#include "worker/data/format/sample_reader.h"

namespace cistern::data {

struct ShuffleBuffer {
  uint64_t samples = 0;  // in the buffer; at least 1
  uint64_t seed = 0;
  // The epoch, and the stream among those that a data set is divided into: each has an order of its
  // own.
  uint32_t epoch = 0, stream = 0;
};

// Returns the samples of `reader` in a random order: the next one is drawn from the buffer, and the
// reader's next sample takes its place. The order is a pure function of the options and of the
// reader's samples; it does not depend on how the result is called. A sample moves forward by at
// most `samples` places, and back by `samples` on average.
//
// Skip reads the samples that it passes over, because later ones are drawn from among them. Memory:
// up to three times the buffer. inputs: sparse inputs of a sample. Errors: those of `reader`.
std::unique_ptr<SampleReader> Shuffled(std::unique_ptr<SampleReader> reader, size_t inputs,
                                       const ShuffleBuffer& options);

}  // namespace cistern::data
