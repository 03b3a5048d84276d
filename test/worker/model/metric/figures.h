// All metrics of drawn scores.
#pragma once

#include <nlohmann/json.hpp>

#include "test/worker/model/metric/drawn_scores.h"
#include "worker/model/metric/metric_set.h"

namespace cistern::model {

inline DrawnScores DrawnScoresOf(const nlohmann::json& json) {
  DrawnScores scores;
  scores.seed = json.at("seed");
  scores.samples = json.at("samples");
  scores.levels = json.value("levels", scores.levels);
  scores.groups = json.value("groups", scores.groups);
  scores.labels = json.value("labels", scores.labels);
  scores.weights = json.value("weights", scores.weights);
  return scores;
}

inline MetricOptions AllMetrics() {
  MetricOptions options;
  for (const std::string& name : MetricNames()) options.metrics.push_back(*FindMetric(name));
  return options;
}

// backwards: adds the samples in reverse order. says_weights: adds weights, even if all are 1.
inline MetricValues FiguresOf(const DrawnScores& scores, bool backwards = false,
                              bool says_weights = false) {
  MetricSet set(AllMetrics());
  for (uint64_t i = 0; i < scores.samples; ++i) {
    const DrawnSample sample = Draw(scores, backwards ? scores.samples - 1 - i : i);
    const std::optional<Key> group = sample.group;
    const absl::Span<const float> weights(&sample.weight, scores.weights || says_weights ? 1 : 0);
    const absl::Status added =
        set.Add({&sample.label, 1}, {&sample.prediction, 1}, {&group, 1}, {}, weights);
    if (!added.ok()) return {};
  }
  return set.Values();
}

}  // namespace cistern::model
