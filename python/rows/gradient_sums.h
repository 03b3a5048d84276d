// Gradients of rows, added up by row in the order in which they come.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/types.h"

namespace cistern {

// Threads: one at a time.
class GradientSums {
 public:
  explicit GradientSums(uint32_t dim, bool counts_squares = false)
      : dim_(dim), counts_squares_(counts_squares) {}

  uint32_t dim() const { return dim_; }

  // rows: distinct within one call. grads: [rows, dim].
  void Add(absl::Span<const Row> rows, const float* grads);
  void Clear();

  // The rows that have a gradient, in the order in which they first had one.
  absl::Span<const Row> rows() const { return rows_; }
  // [rows(), dim].
  const float* grads() const { return grads_.data(); }
  // Of all elements, for an object that counts squares. Not finite if an element was not.
  double SquareSum() const;

 private:
  uint32_t dim_;
  bool counts_squares_;
  std::vector<Row> rows_;
  std::vector<float> grads_;     // [rows_, dim]
  std::vector<uint32_t> place_;  // by row: index into rows_, or kNone; as long as the highest row
  double square_sum_ = 0;        // kept by Add; rounding may leave it below 0
};

// Of all of `values`. Not finite if one of them is not.
double SquareSum(absl::Span<const float> values);

}  // namespace cistern
