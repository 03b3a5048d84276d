#include "python/rows/gradient_sums.h"

#include <algorithm>
#include <cmath>

namespace cistern {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};

}  // namespace

void GradientSums::Add(absl::Span<const Row> rows, const float* grads) {
  for (const Row row : rows) {
    if (row >= place_.size()) place_.resize(size_t{row} + 1, kNone);
    uint32_t& place = place_[row];
    if (place == kNone) {
      place = static_cast<uint32_t>(rows_.size());
      rows_.push_back(row);
      grads_.insert(grads_.end(), grads, grads + dim_);
      if (counts_squares_) square_sum_ += cistern::SquareSum({grads, dim_});
    } else {
      float* sum = grads_.data() + size_t{place} * dim_;
      if (counts_squares_) square_sum_ -= cistern::SquareSum({sum, dim_});
      for (uint32_t k = 0; k < dim_; ++k) sum[k] += grads[k];
      if (counts_squares_) square_sum_ += cistern::SquareSum({sum, dim_});
    }
    grads += dim_;
  }
}

void GradientSums::Clear() {
  for (const Row row : rows_) place_[row] = kNone;
  rows_.clear();
  grads_.clear();
  square_sum_ = 0;
}

double GradientSums::SquareSum() const {
  return std::isnan(square_sum_) ? square_sum_ : std::max(square_sum_, 0.0);
}

double SquareSum(absl::Span<const float> values) {
  constexpr size_t kLanes = 8;  // independent sums, in a fixed order
  double sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) {
      const double value = values[i + k];
      sums[k] += value * value;
    }
  }
  for (; i < values.size(); ++i) sums[0] += double{values[i]} * values[i];
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace cistern
