#include "worker/data/prepare/value_effect.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

struct Rows {
  double all = 0, positive = 0;
};

using Triple = std::array<Rows, 3>;

Rows SumOf(const Triple& triple) {
  Rows sum;
  for (const Rows& rows : triple) {
    sum.all += rows.all;
    sum.positive += rows.positive;
  }
  return sum;
}

// The squared jump of the middle rate over its variance, which is that over all orders of the rows,
// so that it is exact for few rows. Needs rows of both classes.
double JumpOf(const Triple& triple) {
  constexpr double kMost = 10;
  const Rows sum = SumOf(triple);
  const double variance = sum.positive * (sum.all - sum.positive) / (sum.all * (sum.all - 1));
  const auto& [low, middle, high] = triple;
  const double jump =
      middle.positive / middle.all - (low.positive / low.all + high.positive / high.all) / 2;
  const double samples = 1 / middle.all + (1 / low.all + 1 / high.all) / 4;
  return std::min(kMost, jump * jump / (variance * samples));
}

}  // namespace

double ValueEffect(const TableProfile& profile, const LabelChoice& label, size_t column) {
  constexpr size_t kMinTriples = 2;
  std::map<double, Rows> values;
  for (const std::vector<std::string>& row : profile.sample) {
    double number = 0;
    if (ReadNumber(row[column], &number) != NumberKind::kFinite) continue;
    Rows& rows = values[number];
    ++rows.all;
    rows.positive += label.IsPositive(row[label.column]);
  }
  double sum = 0;
  size_t triples = 0;
  Triple triple;
  size_t filled = 0;
  for (const auto& [number, rows] : values) {
    triple[filled++] = rows;
    if (filled < triple.size()) continue;
    filled = 0;
    const Rows together = SumOf(triple);
    if (together.positive == 0 || together.positive == together.all) continue;
    sum += JumpOf(triple);
    ++triples;
  }
  if (triples < kMinTriples) return 0;
  const double freedom = static_cast<double>(triples);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

}  // namespace cistern::data
