// Sums of embedding rows by (sample, slot), and their gradients, in a fixed order.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace cistern {

// The occurrences of rows in a batch. Output i sums occurrences [offsets[i], offsets[i + 1]), and
// occurrence j is row places[j].
struct Occurrences {
  absl::Span<const uint32_t> places;   // [offsets.back()], each below the number of rows
  absl::Span<const uint32_t> offsets;  // [outputs + 1], ascending, offsets[0] = 0
  // What each occurrence counts, as places (the weights of keys, or their shares of an output);
  // empty: 1.
  absl::Span<const float> factors = {};
  size_t outputs() const { return offsets.size() - 1; }
};

// out: [outputs, dim]: the sum of factor times row of each output, in the order of its occurrences;
// with `mean`, which has no factors, divided by their number. An output without occurrences is
// zero. rows: [rows, dim].
void PoolRows(const Occurrences& batch, bool mean, uint32_t dim, const float* rows, float* out);

// grads: [rows, dim], overwritten: the sum of the gradients of each row's occurrences, in their
// order. out_grads: [outputs, dim].
void PoolRowsBackward(const Occurrences& batch, bool mean, uint32_t dim, const float* out_grads,
                      size_t row_num, float* grads);

}  // namespace cistern
