#include "worker/data/prepare/number_spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/types/span.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr size_t kMinNumbers = 100;  // fewer have no spread worth the name
// Normal deviations of the middle half: numbers farther from it are outliers, and are moved to the
// bound. Of a normal column none is.
constexpr double kFarDeviations = 13, kBoundDeviations = 6;
constexpr double kNormalQuartiles = 1.349;  // from one quartile to the other, in deviations
constexpr size_t kMinSentinel = 3;
constexpr double kMinSentinelShare = 0.0005;

// The middle of sorted numbers.
struct Middle {
  double low = 0, median = 0, high = 0;  // quartiles
  double deviation() const { return (high - low) / kNormalQuartiles; }
};

Middle MiddleOf(absl::Span<const double> sorted) {
  const auto at = [&](double share) {
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  return {at(0.25), at(0.5), at(0.75)};
}

bool IsFar(double x, const Middle& middle) {
  const double far = kFarDeviations * middle.deviation();
  return far > 0 && (x < middle.low - far || x > middle.high + far);
}

// The least, or the greatest, number.
double End(const std::vector<double>& sorted, bool least) {
  return least ? sorted.front() : sorted.back();
}

// Removes it if it is a sentinel.
bool RemoveSentinel(bool least, std::vector<double>* sorted) {
  if (sorted->size() < kMinNumbers) return false;
  const double value = End(*sorted, least);
  const auto [begin, end] = std::equal_range(sorted->begin(), sorted->end(), value);
  // Most rows may have it: pdays is 999 in 96 of 100 rows of a known table of a bank.
  const absl::Span<const double> others =
      least ? absl::MakeConstSpan(sorted->data() + (end - sorted->begin()),
                                  static_cast<size_t>(sorted->end() - end))
            : absl::MakeConstSpan(sorted->data(), static_cast<size_t>(begin - sorted->begin()));
  if (others.size() < kMinNumbers || !IsFar(value, MiddleOf(others))) return false;
  const double count = static_cast<double>(end - begin);
  const double needed =
      std::max<double>(kMinSentinel, kMinSentinelShare * static_cast<double>(sorted->size()));
  if (count < needed) return false;
  sorted->erase(begin, end);
  return true;
}

double SkewnessOf(const std::vector<double>& numbers, double mean) {
  double squares = 0, cubes = 0;
  for (const double x : numbers) {
    squares += (x - mean) * (x - mean);
    cubes += (x - mean) * (x - mean) * (x - mean);
  }
  const double n = static_cast<double>(numbers.size());
  return squares > 0 ? std::sqrt(n) * cubes / std::pow(squares, 1.5) : 0;
}

// Whether a column of numbers has enough values to be cut into pieces.
bool IsCut(const ColumnProfile& column) {
  constexpr uint64_t kMinDistinct = 50;
  const bool numeric = column.type == ColumnType::kInteger || column.type == ColumnType::kNumber;
  return numeric && column.distinct > kMinDistinct;
}

// Those of the sampled rows, sorted.
std::vector<double> NumbersOf(const TableProfile& profile, size_t column) {
  std::vector<double> numbers;
  for (const std::vector<std::string>& row : profile.sample) {
    double x = 0;
    if (ReadNumber(row[column], &x) == NumberKind::kFinite) numbers.push_back(x);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

size_t PiecesFor(const TableProfile& profile, uint64_t rarer) {
  constexpr uint64_t kRarerPerPiece = 100, kMost = 8, kLeast = 2;
  uint64_t columns = 0;
  for (size_t i = 0; i < profile.columns.size(); ++i) columns += IsCut(profile.columns[i]);
  const uint64_t pieces =
      std::min(kMost, rarer / (kRarerPerPiece * std::max<uint64_t>(1, columns)));
  return pieces < kLeast ? 0 : pieces;
}

std::vector<double> PiecesOf(const TableProfile& profile, size_t column, size_t pieces) {
  const std::vector<double> sorted = NumbersOf(profile, column);
  std::vector<double> ends;
  if (pieces == 0 || !IsCut(profile.columns[column]) || sorted.size() < kMinNumbers) return ends;
  for (size_t i = 0; i <= pieces; ++i) {
    const double end = sorted[i * (sorted.size() - 1) / pieces];
    if (ends.empty() || end > ends.back()) ends.push_back(end);
  }
  if (ends.size() < 3) ends.clear();
  return ends;
}

NumberSpread SpreadOf(const TableProfile& profile, size_t column, bool logarithms) {
  const ColumnProfile& all = profile.columns[column];
  NumberSpread spread;
  spread.min = all.min;
  spread.max = all.max;
  spread.mean = all.mean;
  spread.skewness = all.skewness;
  const std::vector<double> sorted = NumbersOf(profile, column);
  if (sorted.size() < kMinNumbers) return spread;
  std::vector<double> usual = sorted;
  for (const bool least : {true, false}) {
    for (double value = End(usual, least); RemoveSentinel(least, &usual);
         value = End(usual, least)) {
      spread.sentinels.push_back(value);
    }
  }
  if (spread.has_sentinel()) {
    spread.min = usual.front();
    spread.max = usual.back();
    spread.mean = 0;
    for (const double x : usual) spread.mean += x / static_cast<double>(usual.size());
    spread.skewness = SkewnessOf(usual, spread.mean);
  }
  const auto forward = [&](double x) { return logarithms ? std::log1p(std::max(0.0, x)) : x; };
  const auto back = [&](double x) { return logarithms ? std::expm1(x) : x; };
  for (double& x : usual) x = forward(x);
  if (logarithms) {
    const double count = static_cast<double>(usual.size());
    for (const double x : usual) spread.log_mean += x / count;
    double squares = 0;
    for (const double x : usual) squares += (x - spread.log_mean) * (x - spread.log_mean);
    spread.log_deviation = std::sqrt(squares / count);
  }
  const Middle middle = MiddleOf(usual);
  const bool low = IsFar(forward(all.min), middle) && forward(all.min) < middle.low;
  const bool high = IsFar(forward(all.max), middle) && forward(all.max) > middle.high;
  if (!low && !high && !spread.has_sentinel()) return spread;
  const double bound = kBoundDeviations * middle.deviation();
  const double least = std::max(middle.median - bound, forward(all.min));
  const double most = std::min(middle.median + bound, forward(all.max));
  spread.low = back(least);
  spread.high = back(most);
  const auto beyond =
      std::count_if(usual.begin(), usual.end(), [&](double x) { return x < least || x > most; });
  spread.outliers = static_cast<double>(beyond) / static_cast<double>(usual.size());
  spread.farthest = low || (!high && all.min < spread.min) ? all.min : all.max;
  return spread;
}

}  // namespace cistern::data
