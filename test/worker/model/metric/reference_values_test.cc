// Compares every metric with reference values (reference_metrics.py: scikit-learn and NumPy).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "test/worker/model/metric/figures.h"

namespace cistern::model {
namespace {

nlohmann::json ReadCases() {
  std::ifstream file(CISTERN_SOURCE_DIR "/test/worker/model/metric/reference_values.json");
  return nlohmann::json::parse(file);
}

TEST(Metrics, EqualTheReferenceValues) {
  size_t figures = 0, undefined = 0;
  for (const nlohmann::json& one : ReadCases()) {
    SCOPED_TRACE(one.at("drawn").dump());
    const MetricValues values = FiguresOf(DrawnScoresOf(one.at("drawn")));
    EXPECT_EQ(values.size(), one.at("expected").size());
    for (const auto& [name, expected] : one.at("expected").items()) {
      const MetricValue* value = FindValue(values, name);
      ASSERT_NE(value, nullptr) << name;
      ++figures;
      if (expected.is_null()) {
        EXPECT_FALSE(value->value.has_value()) << name;
        EXPECT_FALSE(value->note.empty()) << name;
        ++undefined;
      } else {
        ASSERT_TRUE(value->value.has_value()) << name << ": " << value->note;
        EXPECT_NEAR(*value->value, expected.get<double>(), 1e-9 * std::abs(expected.get<double>()))
            << name;
      }
    }
  }
  EXPECT_GE(figures, 100u);
  EXPECT_GE(undefined, 8u);
}

TEST(Metrics, HaveTheSameBitsInAnyOrderOfSamples) {
  for (const nlohmann::json& one : ReadCases()) {
    const DrawnScores scores = DrawnScoresOf(one.at("drawn"));
    EXPECT_EQ(FiguresOf(scores), FiguresOf(scores, true)) << one.at("drawn");
  }
}

TEST(Metrics, WeightsThatAreAllOneDoNotChangeABit) {
  for (const nlohmann::json& one : ReadCases()) {
    DrawnScores scores = DrawnScoresOf(one.at("drawn"));
    scores.weights = false;
    EXPECT_EQ(FiguresOf(scores), FiguresOf(scores, false, true)) << one.at("drawn");
  }
}

TEST(Metrics, AWholeWeightIsThatNumberOfSamples) {
  MetricSet weighted(AllMetrics()), repeated(AllMetrics());
  const DrawnScores scores = {.samples = 5000, .levels = 300};
  for (uint64_t i = 0; i < scores.samples; ++i) {
    const DrawnSample sample = Draw(scores, i);
    const std::optional<Key> group = sample.group;
    const auto weight = static_cast<float>(i % 4);
    ASSERT_TRUE(
        weighted.Add({&sample.label, 1}, {&sample.prediction, 1}, {&group, 1}, {}, {&weight, 1})
            .ok());
    for (uint64_t k = 0; k < i % 4; ++k) {
      ASSERT_TRUE(repeated.Add({&sample.label, 1}, {&sample.prediction, 1}, {&group, 1}).ok());
    }
  }
  for (const MetricValue& value : repeated.Values()) {
    if (value.is_count) continue;  // of samples that are there
    const MetricValues values = weighted.Values();
    ASSERT_TRUE(value.value.has_value()) << value.name;
    EXPECT_NEAR(FindValue(values, value.name)->value.value_or(-1), *value.value, 1e-12)
        << value.name;
  }
}

}  // namespace
}  // namespace cistern::model
