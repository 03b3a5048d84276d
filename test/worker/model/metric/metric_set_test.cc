#include "worker/model/metric/metric_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "test/worker/model/metric/figures.h"

namespace cistern::model {
namespace {

using testing::HasSubstr;

std::vector<std::string> Names(const MetricValues& values) {
  std::vector<std::string> names;
  for (const MetricValue& value : values) names.push_back(value.name);
  return names;
}

double Figure(const MetricValues& values, const std::string& name) {
  const MetricValue* value = FindValue(values, name);
  EXPECT_TRUE(value != nullptr && value->value) << name;
  return value != nullptr ? value->value.value_or(-1) : -1;
}

TEST(MetricSet, ReturnsAucLogLossAndThenTheRequestedMetricsInOrder) {
  MetricOptions options;
  options.metrics = {Metric::kRmse, Metric::kAuc, Metric::kCopc, Metric::kRmse};
  MetricSet set(options);
  ASSERT_TRUE(set.Add({0, 1}, {0.25f, 0.75f}).ok());
  EXPECT_EQ(Names(set.Values()), (std::vector<std::string>{"auc", "logloss", "rmse", "copc"}));
}

TEST(MetricSet, ReturnsAValueForEveryMetricName) {
  for (const std::string& name : MetricNames()) {
    MetricOptions options;
    options.metrics = {FindMetric(name).value()};
    MetricSet set(options);
    const std::optional<Key> group = 1;
    ASSERT_TRUE(set.Add({1}, {0.75f}, {&group, 1}).ok());
    EXPECT_NE(FindValue(set.Values(), FieldName(*FindMetric(name))), nullptr) << name;
  }
  EXPECT_FALSE(FindMetric("auc").has_value());
}

TEST(MetricSet, ValuesDoNotDependOnBatchSizes) {
  MetricSet one(AllMetrics()), many(AllMetrics());
  const std::vector<float> labels = {1, 0, 0}, predictions = {0.5f, 0.25f, 0.125f};
  const std::vector<std::optional<Key>> groups = {1, 1, std::nullopt};
  ASSERT_TRUE(one.Add(labels, predictions, groups).ok());
  ASSERT_TRUE(many.Add({&labels[0], 2}, {&predictions[0], 2}, {&groups[0], 2}).ok());
  ASSERT_TRUE(many.Add({&labels[2], 1}, {&predictions[2], 1}, {&groups[2], 1}).ok());
  EXPECT_EQ(one.Values(), many.Values());
  const double loss = -(std::log(0.5) + std::log(0.75) + std::log(0.875)) / 3;
  EXPECT_NEAR(Figure(many.Values(), "average_loss"), loss, 1e-15);
}

TEST(MetricSet, ReturnsValuesOfAllLabelsTogetherAndOfEach) {
  MetricOptions options;
  options.label_dim = 2;
  MetricSet set(options);
  ASSERT_TRUE(set.Add({0, 1, 1, 0}, {0.1f, 0.2f, 0.3f, 0.4f}).ok());
  const MetricValues values = set.Values();
  EXPECT_EQ(Names(values), (std::vector<std::string>{"auc", "logloss", "auc[0]", "logloss[0]",
                                                     "auc[1]", "logloss[1]"}));
  EXPECT_EQ(Figure(values, "auc"), 0.5);  // 0.2 and 0.3 against 0.1 and 0.4
  EXPECT_EQ(Figure(values, "auc[0]"), 1.0);
  EXPECT_EQ(Figure(values, "auc[1]"), 0.0);
  EXPECT_NEAR(Figure(values, "logloss"),
              (Figure(values, "logloss[0]") + Figure(values, "logloss[1]")) / 2, 1e-15);
}

// As in MultiCrossEntropyLoss, labels have weights, and a masked label adds 0 to the sum and 1 to
// the divisor.
TEST(MetricSet, AverageLossWeighsAndMasksLikeTheLoss) {
  MetricOptions options;
  options.label_dim = 2;
  options.metrics = {Metric::kAverageLoss};
  options.masked_below = -0.5f;
  options.label_weights = {2, 10};
  MetricSet set(options);
  ASSERT_TRUE(set.Add({1, -1, 0, 1}, {0.5f, 0.9f, 0.5f, 0.25f}).ok());
  const MetricValues values = set.Values();
  EXPECT_NEAR(Figure(values, "average_loss"),
              (2 * std::log(2.0) + 2 * std::log(2.0) + 10 * std::log(4.0)) / 4, 1e-12);
  EXPECT_NEAR(Figure(values, "logloss"), (2 * std::log(2.0) + std::log(4.0)) / 3, 1e-12);
  EXPECT_EQ(Figure(values, "auc"), 0.25);  // 0.5 and 0.25 against 0.5
}

// A prediction rounds to 0 or 1 in float while its loss is still finite and distinct.
TEST(MetricSet, AverageLossIsComputedFromMargins) {
  MetricOptions options;
  options.metrics = {Metric::kAverageLoss};
  MetricSet set(options);
  const std::vector<float> labels = {1, 0, 1, 0, 1, 0}, predictions = {1, 1, 0, 0, 1, 0.5f};
  const std::vector<double> margins = {40, 40, -40, -40, 12, 0};
  ASSERT_TRUE(set.Add(labels, predictions, {}, margins).ok());
  double expected = 0, clipped = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const double loss = std::log1p(std::exp(labels[i] > 0 ? -margins[i] : margins[i]));
    expected += loss / 6;
    clipped += std::clamp(loss, -std::log1p(-1e-7), -std::log(1e-7)) / 6;
  }
  EXPECT_NEAR(Figure(set.Values(), "average_loss"), expected, 1e-14);
  EXPECT_NEAR(Figure(set.Values(), "logloss"), clipped, 1e-12);
  const absl::Status status = set.Add({1}, {1}, {}, {HUGE_VAL});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the logit of sample 6 is inf"));
}

TEST(MetricSet, UndefinedValuesGiveTheReason) {
  MetricSet set(AllMetrics());
  const std::vector<std::optional<Key>> groups = {1, 2};
  ASSERT_TRUE(set.Add({0, 0}, {0, 0}, groups).ok());
  const MetricValues values = set.Values();
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"auc", "all 2 labels are negative"}, {"ne", "all labels are the same"},
      {"copc", "all predictions are 0"},    {"pcoc", "all labels are 0"},
      {"bucket_error", "enough samples"},   {"gauc", "none of 2 groups"}};
  for (const auto& [name, why] : expected) {
    EXPECT_FALSE(FindValue(values, name)->value.has_value()) << name;
    EXPECT_THAT(FindValue(values, name)->note, HasSubstr(why)) << name;
  }
  for (const MetricValue& value : MetricSet(AllMetrics()).Values()) {
    EXPECT_EQ(value.value.value_or(0), 0) << value.name;
  }
}

TEST(MetricSet, RejectsNonFiniteNumbersWithTheirSample) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  MetricSet set((MetricOptions()));
  ASSERT_TRUE(set.Add({0, 1}, {0.5f, 0.5f}).ok());
  absl::Status status = set.Add({0, 1, 1}, {0.5f, nan, 0.5f});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the prediction of sample 3 is nan"));
  status = MetricSet((MetricOptions())).Add({nan}, {0.5f});
  EXPECT_THAT(std::string(status.message()), HasSubstr("the label of sample 0 is nan"));
}

}  // namespace
}  // namespace cistern::model
