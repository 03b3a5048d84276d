// Which batches of a pass of a stream are scored, if not all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace cistern {

// Whether each batch is among those that are drawn: systematic sampling, so that they are spread
// evenly over the pass, and over all draws each batch is as likely as any other. A pure function,
// so all workers, and a run that trains a pass again, draw the same.
//
// sizes: samples of the batches. most: samples that are drawn at most, but at least one batch; 0:
// all. draw: any number; another one for each pass.
std::vector<bool> DrawBatches(absl::Span<const uint64_t> sizes, uint64_t most, uint64_t draw);

// The first of the last batches, which have `most` samples at most, but are one at least. 0: there
// are no others.
size_t FirstOfLast(absl::Span<const uint64_t> sizes, uint64_t most);

}  // namespace cistern
