#include "worker/report/plot.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cistern::report {
namespace {

std::vector<std::string> LabelsOf(const PlotAxis& axis) {
  std::vector<std::string> labels;
  for (const PlotAxis::Tick& tick : axis.ticks) labels.push_back(tick.label);
  return labels;
}

TEST(RoundAxis, HasTicksAtRoundNumbers) {
  EXPECT_EQ(LabelsOf(RoundAxis(0, 400000, "")),
            (std::vector<std::string>{"0", "100k", "200k", "300k", "400k"}));
  EXPECT_EQ(LabelsOf(RoundAxis(-0.001, 0.1, "")).front(), "0");  // not -0
}

TEST(RoundAxis, WidensAPoint) {
  for (const double at : {0.0, 0.5, -3.0}) {
    const PlotAxis axis = RoundAxis(at, at, "");
    EXPECT_LT(axis.low, at);
    EXPECT_GT(axis.high, at);
    EXPECT_FALSE(axis.ticks.empty());
  }
}

TEST(LogOddsAxis, IsLabelledWithProbabilities) {
  EXPECT_EQ(LabelsOf(LogOddsAxis(-5, 5, "")),
            (std::vector<std::string>{"0.01", "0.1", "0.5", "0.9", "0.99"}));
  EXPECT_GE(LogOddsAxis(0.1, 0.2, "").ticks.size(), 2u);
}

TEST(Thin, KeepsTheMean) {
  PlotPoints points;
  for (int i = 0; i < 1000; ++i) points.emplace_back(i, 2 * i);
  const PlotPoints thin = Thin(points, 10);
  ASSERT_EQ(thin.size(), 10u);
  EXPECT_DOUBLE_EQ(thin[0].first, 49.5);
  EXPECT_DOUBLE_EQ(thin[9].second, 2 * 949.5);
  EXPECT_EQ(Thin(points, 1000), points);
}

TEST(Plot, DrawsInsideItsBoxWhateverThePoints) {
  Plot plot(RoundAxis(0, 1, "x"), RoundAxis(0, 1, ""), "a <chart>");
  plot.Line({{-100, -100}, {100, 100}}, 0, true);
  plot.Steps({{0, 5}, {0.5, -5}}, 0.5, 7);
  const std::string svg = plot.Svg();
  EXPECT_NE(svg.find("aria-label=\"a &lt;chart&gt;\""), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(svg.find("points=\"58.0,208.0 426.0,10.0 \""), std::string::npos) << svg;
}

}  // namespace
}  // namespace cistern::report
