// Charts as inline SVG. Colours come from the page's style sheet (style.h), so that a chart follows
// the light and the dark scheme.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern::report {

using PlotPoints = std::vector<std::pair<double, double>>;

// The range of an axis, and its labelled positions.
struct PlotAxis {
  double low = 0, high = 1;
  struct Tick {
    double at = 0;
    std::string label;
  };
  std::vector<Tick> ticks;
  std::string title;
};

// An axis that covers [low, high] with ticks at round numbers.
PlotAxis RoundAxis(double low, double high, absl::string_view title);
// An axis of log-odds with ticks labelled as probabilities.
PlotAxis LogOddsAxis(double low, double high, absl::string_view title);

// At most `most` points: means over equal ranges of the list.
PlotPoints Thin(const PlotPoints& points, size_t most);

// Threads: one at a time.
class Plot {
 public:
  // label: text that says what the chart shows, for screen readers.
  Plot(PlotAxis x, PlotAxis y, absl::string_view label);
  // colour: from 0; later ones repeat with other dashes. Points outside the axes are cut off.
  void Line(const PlotPoints& points, size_t colour, bool dots = false);
  // The area between the points and the lower end of the y axis, with steps of `width` in x.
  void Steps(const PlotPoints& points, double width, size_t colour);
  // A thin reference line.
  void Reference(double x1, double y1, double x2, double y2);
  std::string Svg() const;

 private:
  double X(double value) const;
  double Y(double value) const;
  const PlotAxis x_, y_;
  const std::string label_;
  std::string marks_;
};

// The class of a run's colour and dashes, "s0" to "s5".
std::string SeriesClass(size_t colour);
// A sample of a line or an area with its name (text), for a legend.
std::string LegendHtml(const std::vector<std::string>& names, bool areas = false);
// <figure> with a title (text) above the chart and a legend (HTML) below it.
std::string FigureHtml(absl::string_view title, const std::string& svg,
                       const std::string& legend = "");

}  // namespace cistern::report
