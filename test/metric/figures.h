// All metrics of drawn scores, collected by several accumulators as several workers would.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "test/metric/drawn_scores.h"
#include "worker/metric/metric_set.h"

namespace cistern {

inline DrawnScores DrawnScoresOf(const nlohmann::json& json) {
  DrawnScores scores;
  scores.seed = json.at("seed");
  scores.samples = json.at("samples");
  scores.levels = json.value("levels", scores.levels);
  scores.groups = json.value("groups", scores.groups);
  scores.labels = json.value("labels", scores.labels);
  return scores;
}

inline MetricOptions AllMetrics() {
  MetricOptions options;
  for (const std::string& name : MetricNames()) options.metrics.push_back(*FindMetric(name));
  return options;
}

// parts: accumulators, which are merged in the end; sample i goes to one of them.
inline MetricValues FiguresOf(const DrawnScores& scores, uint64_t parts) {
  std::vector<MetricSet> sets(parts, MetricSet(AllMetrics()));
  for (uint64_t i = 0; i < scores.samples; ++i) {
    const DrawnSample sample = Draw(scores, i);
    const std::optional<Key> group = sample.group;
    const absl::Status added =
        sets[Mixed(i) % parts].Add({&sample.label, 1}, {&sample.prediction, 1}, {&group, 1});
    if (!added.ok()) return {};
  }
  for (uint64_t part = 1; part < parts; ++part) sets[0].Merge(sets[part]);
  return sets[0].Values();
}

}  // namespace cistern
