// Finds NaN and Inf in the cells of values, before they reach a table.
//
// Not every cell is a float: show and click are doubles in two cells each, and uid is an integer of
// any bits. Each cell of a row therefore has its own pattern: a mask, and the masked bits of a
// number that is not finite.
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

  // The position of the first cell of `cells` (whole rows) whose number is NaN or Inf; cells.size()
  // if all are finite. For a double, the position of its upper half.
  size_t FirstBad(absl::Span<const float> cells) const;

 private:
  void Repeat();
  size_t FirstBadOfChunk(const float* cells, size_t count) const;

  // The patterns of several rows, so that the loop over them is long: cell i is bad if bits & mask
  // == bad.
  std::vector<uint32_t> mask_, bad_;
};

}  // namespace cistern
