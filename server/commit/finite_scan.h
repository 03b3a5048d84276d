// Finds NaN and Inf among the cells of values, before they reach a table.
//
// Not every cell is a float: show and click are doubles in two cells, and uid is an integer whose
// bits may be any. So each cell of a row has its own pattern: the bits to look at, and what they
// are when the number is not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/value/value_layout.h"

namespace cistern {

// Threads: immutable; any thread.
class FiniteScan {
 public:
  // For rows of `layout`, full_floats() cells each.
  explicit FiniteScan(const ValueLayout& layout);
  // For dense rows: every cell is a float.
  explicit FiniteScan(uint32_t columns);

  // Position of the first cell of `cells`, whole rows, whose number is NaN or Inf; cells.size() if
  // there is none. For a double it is the cell of its upper half.
  size_t FirstBad(absl::Span<const float> cells) const;

 private:
  void Repeat();
  size_t FirstBadOfChunk(const float* cells, size_t count) const;

  // Of several rows, so that the loop over them is long: cell i is bad if bits & mask == bad.
  std::vector<uint32_t> mask_, bad_;
};

}  // namespace cistern
