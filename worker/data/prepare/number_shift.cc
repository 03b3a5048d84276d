#include "worker/data/prepare/number_shift.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_format.h"

namespace cistern::data {
namespace {

constexpr uint64_t kSamplesToCompare = 50;
constexpr double kTimesMoved = 10;
constexpr double kDeviationsMoved = 3;

struct Spread {
  double mean = 0, deviation = 0;
};

Spread SpreadOf(const DenseSums& sums, size_t feature) {
  const double n = static_cast<double>(sums.samples);
  const double mean = sums.sum[feature] / n;
  return {mean, std::sqrt(std::max(0.0, sums.squares[feature] / n - mean * mean))};
}

// A column can be several features, of which the pieces between its quantiles are narrow. 0: it
// says whether the number is missing.
double WidthOf(const Recipe::Dense& dense) {
  if (!dense.low || !dense.high) return std::numeric_limits<double>::infinity();
  return *dense.high - *dense.low;
}

bool HasMoved(const Recipe::Dense& dense, const Spread& before, const Spread& fresh) {
  const double moved = std::abs(fresh.mean - before.mean);
  if (dense.transform == DenseTransform::kLog1p) {
    return moved * dense.deviation > std::log(kTimesMoved);
  }
  if (before.deviation == 0) return false;
  if (moved > kDeviationsMoved * before.deviation) return true;
  // One number in all rows may be that of the day.
  const double times = fresh.deviation / before.deviation;
  return times > kTimesMoved || (times > 0 && times < 1 / kTimesMoved);
}

double Decoded(const Recipe::Dense& dense, double value) {
  const double unscaled = value * dense.deviation + dense.mean;
  return dense.transform == DenseTransform::kLog1p ? std::expm1(unscaled) : unscaled;
}

std::string Shown(double number) {
  return absl::StrFormat(std::abs(number) < 1000 ? "%.3g" : "%.0f", number);
}

}  // namespace

void DenseSums::Add(const SampleBlock& block) {
  if (block.size == 0) return;
  const size_t features = block.dense.size() / block.size;
  sum.resize(features);
  squares.resize(features);
  samples += block.size;
  for (size_t s = 0; s < block.size; ++s) {
    for (size_t i = 0; i < features; ++i) {
      const double value = block.dense[s * features + i];
      sum[i] += value;
      squares[i] += value * value;
    }
  }
}

void DenseSums::Add(const DenseSums& other) {
  sum.resize(std::max(sum.size(), other.sum.size()));
  squares.resize(sum.size());
  samples += other.samples;
  for (size_t i = 0; i < other.sum.size(); ++i) {
    sum[i] += other.sum[i];
    squares[i] += other.squares[i];
  }
}

std::vector<ShiftedColumn> ShiftedColumns(const Recipe& recipe, const DenseSums& before,
                                          const DenseSums& fresh) {
  std::vector<ShiftedColumn> columns;
  const size_t features = recipe.dense.size();
  if (before.sum.size() != features || fresh.sum.size() != features) return columns;
  if (std::min(before.samples, fresh.samples) < kSamplesToCompare) return columns;
  std::map<std::string, size_t> widest;  // by column
  for (size_t i = 0; i < features; ++i) {
    const auto [found, is_new] = widest.emplace(recipe.dense[i].column, i);
    if (!is_new && WidthOf(recipe.dense[i]) > WidthOf(recipe.dense[found->second])) {
      found->second = i;
    }
  }
  for (const auto& [column, feature] : widest) {
    const Recipe::Dense& dense = recipe.dense[feature];
    const Spread was = SpreadOf(before, feature), is = SpreadOf(fresh, feature);
    if (!HasMoved(dense, was, is)) continue;
    columns.push_back(
        {column, absl::StrFormat("column '%s': its numbers are about %s%s, and were about %s in "
                                 "the data of before: are they in the same unit?",
                                 column, Shown(Decoded(dense, is.mean)),
                                 is.mean > was.mean ? (dense.high ? " or more" : "")
                                                    : (dense.low ? " or less" : ""),
                                 Shown(Decoded(dense, was.mean)))});
  }
  return columns;
}

}  // namespace cistern::data
