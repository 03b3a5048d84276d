// The occurrences of a batch sorted by row, for a backward pass that adds in a fixed order
// (embedding_pool.h).
#pragma once

#include "common/base/types.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// Distinct row segment_rows[i] occurs in the outputs segment_outputs[segment_offsets[i] ..
// segment_offsets[i + 1]), for i < *distinct.
//
// Occurrence k, of row rows[k], belongs to output o if offsets[o] <= k < offsets[o + 1].
// offsets: [outputs + 1], from 0 to `occurrences`. rows: [occurrences].
// segment_rows: room for `occurrences`; *distinct elements are written, ascending.
// segment_offsets: room for occurrences + 1; *distinct + 1 elements are written, the last is
// `occurrences`.
// segment_outputs: [occurrences], ascending within a segment; an output repeats once per occurrence
// of the row. distinct: in device memory. Elements past the written ones are undefined.
// scratch: MakeSegmentsScratchBytes, 256-byte aligned. occurrences, outputs < 2^32; kOutOfRange on
// a GPU if occurrences >= 2^31.
void MakeSegments(const uint32_t* offsets, const Row* rows, size_t outputs, size_t occurrences,
                  Row* segment_rows, uint32_t* segment_offsets, uint32_t* segment_outputs,
                  uint32_t* distinct, void* scratch, Stream& stream);

// Grows with `occurrences`; also depends on the stream's device.
size_t MakeSegmentsScratchBytes(size_t occurrences, Stream& stream);

}  // namespace cistern::op
