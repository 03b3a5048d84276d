#include "worker/data/prepare/id_numbers.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/numbers.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr size_t kMinValues = 100;
constexpr double kMinRepeated = 2;  // occurrences of a value, on average
constexpr double kMaxCorrelation = 0.5;
constexpr double kMinTopShare = 0.1;  // of the most frequent hundredth of the values

using CountOfInteger = std::map<int64_t, size_t>;  // of integers

// In the sampled rows.
CountOfInteger CountsOf(const TableProfile& profile, size_t place) {
  CountOfInteger counts;
  std::string digits;
  for (const std::vector<std::string>& row : profile.sample) {
    int64_t value = 0;
    if (!IntegerDigits(row[place], &digits) || !absl::SimpleAtoi(digits, &value)) continue;
    ++counts[value];
  }
  return counts;
}

double RowsIn(const CountOfInteger& counts) {
  double rows = 0;
  for (const auto& [value, count] : counts) rows += static_cast<double>(count);
  return rows;
}

// Of the logarithms of neighbours (Pearson).
double NeighbourCorrelation(const CountOfInteger& counts) {
  std::vector<double> logs;
  for (const auto& [value, count] : counts) logs.push_back(std::log(static_cast<double>(count)));
  const double n = static_cast<double>(logs.size() - 1);
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i + 1 < logs.size(); ++i) {
    x += logs[i];
    y += logs[i + 1];
    xx += logs[i] * logs[i];
    yy += logs[i + 1] * logs[i + 1];
    xy += logs[i] * logs[i + 1];
  }
  const double spread = (xx - x * x / n) * (yy - y * y / n);
  return spread > 0 ? (xy - x * y / n) / std::sqrt(spread) : 1;
}

// The share of the most frequent hundredth of the values, without the most frequent one, which is
// often a code for "none".
double TopShare(const CountOfInteger& counts) {
  std::vector<size_t> sorted;
  for (const auto& [value, count] : counts) sorted.push_back(count);
  std::sort(sorted.rbegin(), sorted.rend());
  const size_t top = std::max<size_t>(1, sorted.size() / 100);
  double of_top = 0, all = 0;
  for (size_t i = 1; i < sorted.size(); ++i) {
    all += static_cast<double>(sorted[i]);
    if (i <= top) of_top += static_cast<double>(sorted[i]);
  }
  return of_top / all;
}

// Whether multiples of `unit` are more frequent than other values: the means of the logarithms of
// the counts, by Welch's test.
bool PrefersMultiples(const CountOfInteger& counts, int64_t unit) {
  constexpr double kMinTimes = 2, kMinDeviations = 5;
  double n[2] = {}, sum[2] = {}, squares[2] = {};
  for (const auto& [value, count] : counts) {
    const size_t side = value % unit == 0;
    const double log = std::log(static_cast<double>(count));
    ++n[side];
    sum[side] += log;
    squares[side] += log * log;
  }
  if (n[0] < 2 || n[1] < 2) return false;
  const auto variance_of_mean = [&](size_t side) {
    return (squares[side] - sum[side] * sum[side] / n[side]) / (n[side] * (n[side] - 1));
  };
  const double difference = sum[1] / n[1] - sum[0] / n[0];
  return difference >= std::log(kMinTimes) &&
         difference >= kMinDeviations * std::sqrt(variance_of_mean(0) + variance_of_mean(1));
}

bool AreRounded(const CountOfInteger& counts) {
  return PrefersMultiples(counts, 10) || PrefersMultiples(counts, 100) ||
         PrefersMultiples(counts, 1000);
}

}  // namespace

bool LooksLikeIds(const TableProfile& profile, size_t place) {
  const CountOfInteger counts = CountsOf(profile, place);
  if (counts.size() < kMinValues) return false;
  if (RowsIn(counts) < kMinRepeated * static_cast<double>(counts.size())) return false;
  return NeighbourCorrelation(counts) < kMaxCorrelation && TopShare(counts) >= kMinTopShare &&
         !AreRounded(counts);
}

bool NeighboursAreAsFrequent(const TableProfile& profile, size_t place) {
  const CountOfInteger counts = CountsOf(profile, place);
  return counts.size() > 2 && NeighbourCorrelation(counts) >= kMaxCorrelation;
}

bool LooksLikeAmounts(const TableProfile& profile, const LabelChoice& label, size_t place) {
  constexpr size_t kMinRows = 200, kParts = 10;
  constexpr double kMinUneven = 0.1;    // Kolmogorov and Smirnov's distance from a uniform one
  constexpr double kMinChiSquare = 40;  // of 9 degrees of freedom: 8 in a million by chance
  std::vector<std::pair<double, bool>> rows;
  for (const std::vector<std::string>& row : profile.sample) {
    double x = 0;
    if (ReadNumber(row[place], &x) != NumberKind::kFinite) continue;
    rows.emplace_back(x, label.IsPositive(row[label.column]));
  }
  if (rows.size() < kMinRows) return false;
  std::sort(rows.begin(), rows.end());
  const double n = static_cast<double>(rows.size());
  const double low = rows.front().first, range = rows.back().first - low;
  if (!(range > 0)) return false;
  double distance = 0, positives = 0;
  std::vector<double> of_part(kParts), size(kParts);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double expected = (rows[i].first - low) / range;
    distance = std::max(distance, std::abs(expected - static_cast<double>(i) / n));
    const size_t part = i * kParts / rows.size();
    ++size[part];
    of_part[part] += rows[i].second;
    positives += rows[i].second;
  }
  const double rate = positives / n;
  if (distance < kMinUneven || rate <= 0 || rate >= 1) return false;
  double chi_square = 0;
  for (size_t part = 0; part < kParts; ++part) {
    const double difference = of_part[part] - rate * size[part];
    chi_square += difference * difference / (rate * (1 - rate) * size[part]);
  }
  return chi_square >= kMinChiSquare;
}

}  // namespace cistern::data
