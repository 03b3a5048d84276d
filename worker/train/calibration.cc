#include "worker/train/calibration.h"

#include <algorithm>
#include <cmath>

namespace cistern {
namespace {

double LogOddsOf(double p) {
  constexpr double kLeast = 1e-12;
  p = std::clamp(p, kLeast, 1 - kLeast);
  return std::log(p / (1 - p));
}

double ShareAt(double log_odds) {
  return 1 / (1 + std::exp(-log_odds));
}

double MeanAfter(const std::vector<ScoreBin>& bins, double shift) {
  double sum = 0, samples = 0;
  for (const ScoreBin& bin : bins) {
    const double of_bin = static_cast<double>(bin.samples);
    sum += of_bin * ShareAt(LogOddsOf(bin.predicted / of_bin) + shift);
    samples += of_bin;
  }
  return sum / samples;
}

}  // namespace

double ExpectedShare(const std::vector<ScoreBin>& bins, double share) {
  double positives = 0, samples = 0;
  for (const ScoreBin& bin : bins) {
    positives += bin.positives;
    samples += static_cast<double>(bin.samples);
  }
  const double rarer = std::min(positives, samples - positives);
  if (rarer <= 0) return share;
  const double weight = rarer / (rarer + kPriorPositives);
  return ShareAt(weight * LogOddsOf(positives / samples) + (1 - weight) * LogOddsOf(share));
}

double ShiftToExpectedShare(const std::vector<ScoreBin>& bins, double share) {
  const double target = ExpectedShare(bins, share);
  double low = -kShiftMost, high = kShiftMost;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (MeanAfter(bins, middle) < target ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace cistern
