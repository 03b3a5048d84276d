// The metrics of an evaluation: all that a model file requests, in one pass over the predictions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "worker/model/metric/calibration.h"
#include "worker/model/metric/group_auc.h"
#include "worker/model/metric/log_loss.h"
#include "worker/model/metric/metric_name.h"
#include "worker/model/metric/ranked_scores.h"

namespace cistern::model {

struct MetricOptions {
  std::vector<Metric> metrics;  // in addition to AUC and log loss, which are always included
  size_t label_dim = 1;
  std::vector<std::string> label_names;  // [label_dim], in the names of values; empty: numbers
  // Labels below this are masked: the metrics skip them, and the average loss counts them as 0.
  std::optional<float> masked_below;
  std::vector<float> label_weights;  // [label_dim] in the average loss; empty: all are 1
  SortFloats sort;                   // sorts predictions; empty: std::sort
};

// Collects labels and predictions and computes metrics from them. The order of the samples changes
// no bit of a metric: counts are integers, sums are exact (ExactSum), and weighted pairs are added
// in the order of the predictions. Weights that are all 1 give the bits of no weights.
//
// Memory: 4 bytes per prediction, 20 with GAUC, 4 more with weights; with several labels twice as
// much while Values runs.
//
// Threads: one at a time.
class MetricSet {
 public:
  explicit MetricSet(const MetricOptions& options);

  // Adds n samples.
  //
  // labels, predictions: [n, label_dim], predictions in [0, 1].
  // groups: [n], nullopt for a sample without a group; empty without GAUC.
  // margins: [n, label_dim], the log-odds of the predictions, from which losses are computed. Empty
  // if only the predictions are known; all losses are clipped then (log_loss.h).
  // weights: [n], in [0, 1e9]; a sample of weight 0 counts for nothing. Empty: all are 1.
  // kDataLoss names the sample whose label, prediction or margin is not finite.
  absl::Status Add(absl::Span<const float> labels, absl::Span<const float> predictions,
                   absl::Span<const std::optional<Key>> groups = {},
                   absl::Span<const double> margins = {}, absl::Span<const float> weights = {});

  // Returns "auc", "logloss", then the others in the order of the options, each once. GAUC adds the
  // numbers of groups. With several labels these values are over all labels together, and the
  // values of each label follow: "auc[0]", ... Sorts the collected predictions in place.
  MetricValues Values();
  // Of "auc" of Values; nullopt if that is undefined, or if there are weights or several labels.
  std::optional<double> AucError() const;

 private:
  // The collected samples of one label.
  struct OfLabel {
    RankedScores scores;
    LogLoss log_loss, average_loss;  // clipped; weighted and unclipped, as in the loss layer
    Calibration calibration;
    GroupAuc groups;
    void Merge(const OfLabel& other);  // adds the samples of another label
  };
  bool Asks(Metric metric) const;
  void AppendValues(OfLabel& label, const std::string& suffix, MetricValues* values) const;
  MetricValue ValueOf(Metric metric, OfLabel& label) const;

  const MetricOptions options_;
  std::vector<Metric> metrics_;  // in the order of Values
  std::vector<OfLabel> labels_;
  uint64_t samples_ = 0;
};

}  // namespace cistern::model
