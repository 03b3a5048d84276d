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

double MeanAfter(const std::vector<report::ScoreBin>& bins, double shift) {
  double sum = 0, weight = 0;
  for (const report::ScoreBin& bin : bins) {
    sum += bin.total() * ShareAt(LogOddsOf(bin.predicted / bin.total()) + shift);
    weight += bin.total();
  }
  return sum / weight;
}

double SamplesOf(const std::vector<report::ScoreBin>& bins) {
  double samples = 0;
  for (const report::ScoreBin& bin : bins) samples += static_cast<double>(bin.samples);
  return samples;
}

}  // namespace

double DriftedShare(double scored, double rarer, double share) {
  if (rarer <= 0) return share;
  const double difference = LogOddsOf(scored) - LogOddsOf(share);
  const double chance = kDeviationsOfDrift * kDeviationsOfDrift / rarer;
  const double drift = std::max(1 / kPriorPositives, difference * difference - chance);
  const double weight = drift / (drift + 1 / rarer);
  return ShareAt(weight * LogOddsOf(scored) + (1 - weight) * LogOddsOf(share));
}

double ExpectedShare(const std::vector<report::ScoreBin>& bins, double share) {
  double positives = 0, total = 0;
  for (const report::ScoreBin& bin : bins) {
    positives += bin.positives;
    total += bin.total();
  }
  const double scored = positives / total;
  return DriftedShare(scored, std::min(scored, 1 - scored) * SamplesOf(bins), share);
}

double ShiftToShare(const std::vector<report::ScoreBin>& bins, double target, double most) {
  double low = -most, high = most;
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = (low + high) / 2;
    (MeanAfter(bins, middle) < target ? low : high) = middle;
  }
  const double shift = (low + high) / 2;
  const double unsure = kPriorSamples / (SamplesOf(bins) + kPriorSamples);
  return shift - std::clamp(shift, -kMaxShift, kMaxShift) * unsure;
}

}  // namespace cistern
