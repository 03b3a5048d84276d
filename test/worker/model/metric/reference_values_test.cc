// Compares every metric with reference values (reference_metrics.py: scikit-learn and NumPy).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "test/worker/model/metric/figures.h"

namespace cistern {
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

}  // namespace
}  // namespace cistern
