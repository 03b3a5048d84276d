#include "python/rows/gradient_sums.h"

#include <algorithm>

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
    } else {
      float* sum = grads_.data() + size_t{place} * dim_;
      for (uint32_t k = 0; k < dim_; ++k) sum[k] += grads[k];
    }
    grads += dim_;
  }
}

void GradientSums::Clear() {
  for (const Row row : rows_) place_[row] = kNone;
  rows_.clear();
  grads_.clear();
}

double GradientSums::SquareSum() const {
  return cistern::SquareSum(grads_);
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
