// Predictions and labels of an evaluation, counted by log-odds: enough for deciles, calibration and
// histograms, in memory that does not grow with the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace cistern::report {

// The samples whose log-odds are in [index / kBinsPerUnit, (index + 1) / kBinsPerUnit).
struct ScoreBin {
  int32_t index = 0;
  uint64_t samples = 0;
  double positives = 0;               // the weighted sum of the labels
  double predicted = 0;               // the weighted sum of the predictions
  std::optional<double> weight = {};  // the sum of the weights, if any is not 1

  double total() const { return weight.value_or(static_cast<double>(samples)); }
  bool operator==(const ScoreBin&) const = default;
};

inline constexpr int32_t kBinsPerUnit = 32;
inline constexpr int32_t kBinsEachSide = 16 * kBinsPerUnit;  // the outermost bins take the rest

// Threads: one at a time.
class ScoreBins {
 public:
  ScoreBins();
  // label: in [0, 1]. margin: the log-odds of `prediction`; not NaN. weight: above 0.
  void Add(float label, float prediction, double margin, double weight = 1);
  // The bins that hold samples, ascending.
  std::vector<ScoreBin> Filled() const;

 private:
  std::vector<ScoreBin> bins_;  // each with its weight
  bool weighted_ = false;       // a weight is not 1
};

// A part of the samples, by ascending prediction.
struct ScorePart {
  ScoreBin sum;               // index: of its first bin
  int32_t last = 0;           // the index of its last bin
  std::optional<double> auc;  // among the samples of this part; nullopt: one class only
};

// Cuts bins (ascending) into up to `parts` parts of about equal size. A bin is not divided, so
// there are fewer parts if many samples share a prediction.
std::vector<ScorePart> CutByScore(const std::vector<ScoreBin>& bins, size_t parts);

// The AUC of binned samples; samples of one bin count as ties. nullopt: one class only.
std::optional<double> AucOfBins(const std::vector<ScoreBin>& bins);

// Sum of predictions / sum of labels; nullopt without a positive label.
std::optional<double> CalibrationOf(const ScoreBin& sum);

// The prediction at the lower end of bin `index`.
double PredictionAt(double index);

}  // namespace cistern::report
