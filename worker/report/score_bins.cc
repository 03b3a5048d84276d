#include "worker/report/score_bins.h"

#include <algorithm>
#include <cmath>

namespace cistern::report {
namespace {

void AddTo(const ScoreBin& bin, ScoreBin* sum) {
  sum->samples += bin.samples;
  sum->positives += bin.positives;
  sum->predicted += bin.predicted;
  if (bin.weight) sum->weight = sum->weight.value_or(0) + *bin.weight;
}

}  // namespace

ScoreBins::ScoreBins() : bins_(2 * kBinsEachSide) {
  for (int32_t i = 0; i < 2 * kBinsEachSide; ++i) {
    bins_[i].index = i - kBinsEachSide;
    bins_[i].weight = 0;
  }
}

void ScoreBins::Add(float label, float prediction, double margin, double weight) {
  constexpr double kLimit = kBinsEachSide;
  const double place = std::clamp(std::floor(margin * kBinsPerUnit), -kLimit, kLimit - 1);
  ScoreBin& bin = bins_[static_cast<size_t>(static_cast<int32_t>(place) + kBinsEachSide)];
  ++bin.samples;
  bin.positives += weight * static_cast<double>(label);
  bin.predicted += weight * static_cast<double>(prediction);
  *bin.weight += weight;
  weighted_ = weighted_ || weight != 1;
}

std::vector<ScoreBin> ScoreBins::Filled() const {
  std::vector<ScoreBin> filled;
  for (const ScoreBin& bin : bins_) {
    if (bin.samples == 0) continue;
    filled.push_back(bin);
    if (!weighted_) filled.back().weight.reset();
  }
  return filled;
}

std::vector<ScorePart> CutByScore(const std::vector<ScoreBin>& bins, size_t parts) {
  uint64_t total = 0;
  for (const ScoreBin& bin : bins) total += bin.samples;
  std::vector<ScorePart> cut;
  uint64_t done = 0;
  size_t first = 0;
  for (size_t i = 0; i < bins.size(); ++i) {
    done += bins[i].samples;
    const double share = static_cast<double>(done) / static_cast<double>(total);
    if (share * static_cast<double>(parts) < static_cast<double>(cut.size() + 1) - 1e-9 &&
        i + 1 < bins.size()) {
      continue;
    }
    ScorePart part;
    part.sum.index = bins[first].index;
    part.last = bins[i].index;
    const std::vector<ScoreBin> own(bins.begin() + static_cast<ptrdiff_t>(first),
                                    bins.begin() + static_cast<ptrdiff_t>(i) + 1);
    for (const ScoreBin& bin : own) AddTo(bin, &part.sum);
    part.auc = AucOfBins(own);
    cut.push_back(part);
    first = i + 1;
  }
  return cut;
}

std::optional<double> AucOfBins(const std::vector<ScoreBin>& bins) {
  double pairs = 0, negatives = 0, positives = 0;
  for (const ScoreBin& bin : bins) {
    const double own_negatives = bin.total() - bin.positives;
    pairs += bin.positives * (negatives + own_negatives / 2);
    positives += bin.positives;
    negatives += own_negatives;
  }
  if (positives <= 0 || negatives <= 0) return std::nullopt;
  return pairs / (positives * negatives);
}

std::optional<double> CalibrationOf(const ScoreBin& sum) {
  if (sum.positives <= 0) return std::nullopt;
  return sum.predicted / sum.positives;
}

double PredictionAt(double index) {
  return 1 / (1 + std::exp(-index / kBinsPerUnit));
}

}  // namespace cistern::report
