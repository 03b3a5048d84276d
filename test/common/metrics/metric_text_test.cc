#include "common/metrics/metric_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/metrics/process_figures.h"

namespace cistern {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr double kTwoBounds[] = {0.001, 2.5};

// The text format, as https://prometheus.io/docs/instrumenting/exposition_formats/ describes it.
TEST(MetricText, WritesFamiliesWithHelpAndType) {
  MetricText text("cistern_x_");
  text.Counter("keys_total", "Keys.", uint64_t{18446744073709551615u});
  text.Family("rows", MetricType::kGauge, "Rows of a table.");
  text.Sample({{"table", "a"}, {"rank", "0"}}, 3);
  text.Sample({{"table", "b"}}, 0.1);
  EXPECT_EQ(text.Take(),
            "# HELP cistern_x_keys_total Keys.\n"
            "# TYPE cistern_x_keys_total counter\n"
            "cistern_x_keys_total 18446744073709551615\n"
            "# HELP cistern_x_rows Rows of a table.\n"
            "# TYPE cistern_x_rows gauge\n"
            "cistern_x_rows{table=\"a\",rank=\"0\"} 3\n"
            "cistern_x_rows{table=\"b\"} 0.1\n");
}

TEST(MetricText, WritesHistogramsWithCumulativeBuckets) {
  DurationHistogram histogram(kTwoBounds);
  histogram.Add(absl::Milliseconds(1));
  histogram.Add(absl::Seconds(2));
  histogram.Add(absl::Seconds(4));
  MetricText text("cistern_x_");
  text.Family("call_seconds", MetricType::kHistogram, "Calls.");
  text.Sample({{"method", "Pull"}}, histogram);
  EXPECT_EQ(text.Take(),
            "# HELP cistern_x_call_seconds Calls.\n"
            "# TYPE cistern_x_call_seconds histogram\n"
            "cistern_x_call_seconds_bucket{method=\"Pull\",le=\"0.001\"} 1\n"
            "cistern_x_call_seconds_bucket{method=\"Pull\",le=\"2.5\"} 2\n"
            "cistern_x_call_seconds_bucket{method=\"Pull\",le=\"+Inf\"} 3\n"
            "cistern_x_call_seconds_sum{method=\"Pull\"} 6.001\n"
            "cistern_x_call_seconds_count{method=\"Pull\"} 3\n");
}

TEST(MetricText, WritesNumbersThatAreNone) {
  MetricText text("x_");
  text.Family("loss", MetricType::kGauge, "Loss.");
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
    text.Sample({}, value);
  }
  EXPECT_THAT(text.Take(), HasSubstr("x_loss NaN\nx_loss +Inf\nx_loss -Inf\n"));
}

std::string LabelOf(const std::string& value) {
  MetricText text("x_");
  text.Family("y", MetricType::kGauge, "Y.");
  text.Sample({{"label", value}}, 1);
  std::string page = text.Take();
  return page.substr(page.find('{'));
}

// Names of tables and models come from outside.
TEST(MetricText, EscapesAndRepairsTheValuesOfLabels) {
  EXPECT_EQ(LabelOf("a\"b\\c\nd"), "{label=\"a\\\"b\\\\c\\nd\"} 1\n");
  EXPECT_EQ(LabelOf("größe €😀"), "{label=\"größe €😀\"} 1\n");
  // A lone continuation, an overlong slash, half a surrogate, beyond U+10FFFF, and a cut character.
  EXPECT_EQ(LabelOf("\x80"), "{label=\"?\"} 1\n");
  EXPECT_EQ(LabelOf("\xC0\xAF"), "{label=\"??\"} 1\n");
  EXPECT_EQ(LabelOf("\xED\xA0\x80"), "{label=\"???\"} 1\n");
  EXPECT_EQ(LabelOf("\xF4\x90\x80\x80"), "{label=\"????\"} 1\n");
  EXPECT_EQ(LabelOf("a\xE2\x82"), "{label=\"a??\"} 1\n");
}

TEST(MetricText, CutsLongLabelsBetweenCharacters) {
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "€";
  const std::string label = LabelOf(euros);
  EXPECT_LT(label.size(), MetricText::kMaxLabelBytes + 30);
  EXPECT_THAT(label, testing::EndsWith("€...\"} 1\n"));
}

TEST(MetricTextDeathTest, StopsOnNamesAgainstTheConventions) {
  MetricText text("x_");
  EXPECT_DEATH(text.Counter("keys", "A counter without _total.", uint64_t{1}), "");
  EXPECT_DEATH(text.Gauge("keys_total", "A gauge with it.", 1), "");
  EXPECT_DEATH(text.Gauge("Keys", "Upper case.", 1), "");
  EXPECT_DEATH(text.Gauge("keys", "Two\nlines.", 1), "");
}

TEST(ProcessFigures, AreThoseOfThisProcess) {
  const ProcessFigures before = ReadProcessFigures();
  EXPECT_GT(before.resident_bytes, 1u << 20);
  EXPECT_GE(before.open_files, 3u);
  EXPECT_GT(before.max_open_files, before.open_files);
  EXPECT_GT(before.start_time_seconds, 1.6e9);
  std::FILE* const file = std::fopen("/dev/null", "r");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(ReadProcessFigures().open_files, before.open_files + 1);
  std::fclose(file);
  MetricText text("x_");
  AddProcessFigures(&text);
  EXPECT_THAT(text.Take(), StartsWith("# HELP process_resident_memory_bytes "));
}

}  // namespace
}  // namespace cistern
