// RUN/evaluation.json: what an evaluation says beyond its metrics (docs/formats.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/report/score_bins.h"

namespace cistern::report {

inline constexpr char kScoreDetailFile[] = "evaluation.json";

struct ScoreDetail {
  uint64_t iter = 0;     // of the state that was evaluated
  uint64_t samples = 0;  // labels that were scored; several per sample with several labels
  double positives = 0, predicted = 0;  // weighted sums of labels and predictions
  std::optional<double> weight;         // the sum of the weights, if any is not 1
  uint64_t other_labels = 0;            // labels that are neither 0 nor 1
  double lowest = 0, highest = 0;       // prediction
  uint64_t keys = 0, unseen_keys = 0;   // distinct keys; those that training has not seen
  std::optional<double> auc, logloss;
  std::vector<ScoreBin> bins;  // ascending, none empty

  double total() const { return weight.value_or(static_cast<double>(samples)); }
  // Weighted, as all shares here; 0 without samples.
  double share_of_positives() const { return total() > 0 ? positives / total() : 0; }
  // Sum of predictions / sum of labels, 1 if calibrated; nullopt without a positive label.
  std::optional<double> calibration_ratio() const {
    return positives > 0 ? std::optional(predicted / positives) : std::nullopt;
  }
};

std::string FormatScoreDetail(const ScoreDetail& detail);
// kDataLoss: not JSON, another format, or bins that are not ascending.
absl::StatusOr<ScoreDetail> ParseScoreDetail(const std::string& text);

// Collects the detail of one evaluation.
//
// Threads: one at a time.
class ScoreCollector {
 public:
  // label: in [0, 1]. prediction: in [0, 1], with log-odds `margin`. A sample of weight 0 is left
  // out.
  void Add(float label, float prediction, double margin, float weight = 1);
  // The fields that follow from the predictions.
  ScoreDetail Detail() const;

 private:
  ScoreBins bins_;
  uint64_t other_labels_ = 0;
  float lowest_ = 1, highest_ = 0;
};

}  // namespace cistern::report
