// The rows of a dense table that a pass writes: pushed values, and pushed gradients that are summed
// and applied by the table's rule.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "server/commit/staged_push.h"
#include "server/table/dense_table.h"

namespace cistern::server {

// New values of consecutive rows.
class DenseRows {
 public:
  // values: [count, columns], borrowed.
  DenseRows(uint64_t start, uint64_t count, const float* values)
      : start_(start), count_(count), pushed_(values) {}
  DenseRows(uint64_t start, uint64_t count, std::vector<float> values)
      : start_(start), count_(count), computed_(std::move(values)) {}

  uint64_t start() const { return start_; }
  uint64_t count() const { return count_; }
  const float* values() const { return computed_.empty() ? pushed_ : computed_.data(); }

 private:
  uint64_t start_, count_;
  const float* pushed_ = nullptr;
  std::vector<float> computed_;
};

// The rows of `table` that the commit writes, from its pushes in (worker, sequence) order;
// gradients of one row are summed in that order. The result borrows the values of the pushes. It
// depends only on the pushes and on the table's committed rows, so a repeated call before the
// commit gives the same result.
//
// kInvalidArgument, which names the row: its value was pushed twice, or both a value and a gradient
// were pushed, or the rule yields NaN or Inf. kFailedPrecondition: gradients for a table without
// values.
absl::StatusOr<std::vector<DenseRows>> NewDenseRows(const DenseTable& table,
                                                    absl::Span<const StagedPush* const> pushes);

}  // namespace cistern::server
