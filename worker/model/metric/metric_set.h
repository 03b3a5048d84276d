// The figures of an evaluation: everything that a model file asks for, in one pass over the
// predictions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/base/types.h"
#include "worker/model/metric/calibration.h"
#include "worker/model/metric/group_auc.h"
#include "worker/model/metric/log_loss.h"
#include "worker/model/metric/metric_name.h"
#include "worker/model/metric/ranked_scores.h"

namespace cistern {

struct MetricOptions {
  std::vector<Metric> metrics;  // beside AUC and log loss, which are always there
  size_t label_dim = 1;
  // Labels below this are masked: they have no score, and the average loss counts them as 0.
  std::optional<float> masked_below;
  std::vector<float> label_weights;  // [label_dim] in the average loss; empty: all are 1
  SortFloats sort;                   // who sorts predictions; empty: std::sort
};

// Collects labels and predictions. The order in which they come changes no bit of a figure: counts
// are integers, and so are sums (ExactSum).
//
// Memory: 4 bytes a prediction, 20 with GAUC; with several labels twice that while Values runs.
//
// Threads: one at a time.
class MetricSet {
 public:
  explicit MetricSet(const MetricOptions& options);

  // labels, predictions: [n, label_dim], predictions in [0, 1]. groups: [n], or empty without GAUC;
  // nullopt: the sample belongs to none. margins: [n, label_dim], the log-odds of the predictions,
  // of which losses are taken; empty where only the predictions are known, whose losses, all of
  // them, are clipped (log_loss.h). kDataLoss: a label, prediction or margin is not a finite
  // number, with its sample.
  absl::Status Add(absl::Span<const float> labels, absl::Span<const float> predictions,
                   absl::Span<const std::optional<Key>> groups = {},
                   absl::Span<const double> margins = {});

  // "auc", "logloss", then the others in the order of the options, each once; GAUC also says of how
  // many groups it is. With several labels these are over all labels together, and the same follow
  // for each: "auc[0]", ... Sorts what was collected.
  MetricValues Values();

 private:
  // What is collected of one label.
  struct OfLabel {
    RankedScores scores;
    LogLoss log_loss, average_loss;  // clipped; as the loss layer has it
    Calibration calibration;
    GroupAuc groups;
    void Merge(const OfLabel& other);  // of another label
  };
  bool Asks(Metric metric) const;
  void AppendValues(OfLabel& label, const std::string& suffix, MetricValues* values) const;
  MetricValue ValueOf(Metric metric, OfLabel& label) const;

  const MetricOptions options_;
  std::vector<Metric> metrics_;  // in the order of Values
  std::vector<OfLabel> labels_;
  uint64_t samples_ = 0;
};

}  // namespace cistern
