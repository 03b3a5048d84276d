// The lengths of sequences (worker/data/format/sequence_slots.h).
#pragma once

#include "cuda/op/primitive/op.h"

namespace cistern::op {

// y(s) = the number of keys in places first .. first + count of sample s.
//
// offsets: [b * places + 1], by (sample, place). y: [b], `stride` elements apart.
void SequenceLengths(const uint32_t* offsets, size_t places, size_t first, size_t count, Values y,
                     size_t stride, size_t b, Stream& stream);

}  // namespace cistern::op
