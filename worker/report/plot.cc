#include "worker/report/plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/report/html.h"

namespace cistern::report {
namespace {

// The coordinates of the drawing. A page shows it 320 to 560 pixels wide.
constexpr double kWidth = 440, kHeight = 250;
constexpr double kLeft = 58, kRight = 14, kTop = 10, kBottom = 42;
constexpr size_t kColours = 6;

std::string Place(double x) {
  return absl::StrFormat("%.1f", x);
}

}  // namespace

PlotAxis RoundAxis(double low, double high, absl::string_view title) {
  if (!(high > low)) {
    const double around = std::max(std::abs(low) * 0.01, 1e-6);
    low -= around;
    high += around;
  }
  constexpr double kTicks = 5;
  const double rough = (high - low) / kTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  PlotAxis axis{low, high, {}, std::string(title)};
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
    axis.ticks.push_back({k * step + 0.0, TickText(k * step + 0.0)});  // -0 becomes 0
  }
  return axis;
}

PlotAxis LogOddsAxis(double low, double high, absl::string_view title) {
  PlotAxis axis{low, high, {}, std::string(title)};
  double last = -1e9;
  for (const double probability :
       {1e-6, 1e-5, 1e-4, .001, .01, .1, .5, .9, .99, .999, .9999, .99999, .999999}) {
    const double at = std::log(probability / (1 - probability));
    if (at < low || at > high || at - last < (high - low) / 9) continue;
    axis.ticks.push_back({at, absl::StrFormat("%g", probability)});
    last = at;
  }
  if (axis.ticks.size() >= 2) return axis;
  // A range between two of these probabilities: round shares of it.
  axis.ticks.clear();
  for (const double share : {.1, .35, .6, .85}) {
    const double at = low + share * (high - low);
    axis.ticks.push_back({at, absl::StrFormat("%.3g", 1 / (1 + std::exp(-at)))});
  }
  return axis;
}

PlotPoints Thin(const PlotPoints& points, size_t most) {
  if (points.size() <= most) return points;
  PlotPoints thin;
  for (size_t i = 0; i < most; ++i) {
    const size_t first = i * points.size() / most, last = (i + 1) * points.size() / most;
    double x = 0, y = 0;
    for (size_t k = first; k < last; ++k) {
      x += points[k].first;
      y += points[k].second;
    }
    const auto count = static_cast<double>(last - first);
    thin.emplace_back(x / count, y / count);
  }
  return thin;
}

Plot::Plot(PlotAxis x, PlotAxis y, absl::string_view label)
    : x_(std::move(x)), y_(std::move(y)), label_(label) {}

double Plot::X(double value) const {
  const double share = std::clamp((value - x_.low) / (x_.high - x_.low), 0.0, 1.0);
  return kLeft + share * (kWidth - kLeft - kRight);
}

double Plot::Y(double value) const {
  const double share = std::clamp((value - y_.low) / (y_.high - y_.low), 0.0, 1.0);
  return kHeight - kBottom - share * (kHeight - kTop - kBottom);
}

void Plot::Line(const PlotPoints& points, size_t colour, bool dots) {
  if (points.empty()) return;
  absl::StrAppend(&marks_, "<polyline class=\"line ", SeriesClass(colour), "\" points=\"");
  for (const auto& [x, y] : points) absl::StrAppend(&marks_, Place(X(x)), ",", Place(Y(y)), " ");
  marks_ += "\"/>\n";
  if (!dots && points.size() > 1) return;
  for (const auto& [x, y] : points) {
    absl::StrAppend(&marks_, "<circle class=\"dot ", SeriesClass(colour), "\" cx=\"", Place(X(x)),
                    "\" cy=\"", Place(Y(y)), "\" r=\"2.6\"><title>",
                    absl::StrFormat("%.6g: %.6g", x, y), "</title></circle>\n");
  }
}

void Plot::Steps(const PlotPoints& points, double width, size_t colour) {
  if (points.empty()) return;
  absl::StrAppend(&marks_, "<path class=\"area ", SeriesClass(colour), "\" d=\"M",
                  Place(X(points.front().first)), ",", Place(Y(y_.low)));
  for (const auto& [x, y] : points) {
    absl::StrAppend(&marks_, "V", Place(Y(y)), "H", Place(X(x + width)));
  }
  absl::StrAppend(&marks_, "V", Place(Y(y_.low)), "Z\"/>\n");
}

void Plot::Reference(double x1, double y1, double x2, double y2) {
  absl::StrAppend(&marks_, "<line class=\"reference\" x1=\"", Place(X(x1)), "\" y1=\"",
                  Place(Y(y1)), "\" x2=\"", Place(X(x2)), "\" y2=\"", Place(Y(y2)), "\"/>\n");
}

std::string Plot::Svg() const {
  std::string svg = absl::StrCat("<svg viewBox=\"0 0 ", kWidth, " ", kHeight,
                                 "\" role=\"img\" aria-label=\"", EscapeHtml(label_), "\">\n");
  const std::string left = Place(kLeft), right = Place(kWidth - kRight);
  const std::string below = Place(kHeight - kBottom + 15);
  for (const PlotAxis::Tick& tick : y_.ticks) {
    const std::string y = Place(Y(tick.at));
    absl::StrAppend(&svg, "<line class=\"grid\" x1=\"", left, "\" x2=\"", right, "\" y1=\"", y,
                    "\" y2=\"", y, "\"/><text class=\"end\" x=\"", Place(kLeft - 6), "\" y=\"",
                    Place(Y(tick.at) + 4), "\">", EscapeHtml(tick.label), "</text>\n");
  }
  const std::string floor = Place(kHeight - kBottom);
  for (const PlotAxis::Tick& tick : x_.ticks) {
    const std::string x = Place(X(tick.at));
    absl::StrAppend(&svg, "<line class=\"tick\" x1=\"", x, "\" x2=\"", x, "\" y1=\"", floor,
                    "\" y2=\"", Place(kHeight - kBottom + 4), "\"/><text class=\"mid\" x=\"", x,
                    "\" y=\"", below, "\">", EscapeHtml(tick.label), "</text>\n");
  }
  absl::StrAppend(&svg, "<line class=\"axis\" x1=\"", left, "\" x2=\"", right, "\" y1=\"", floor,
                  "\" y2=\"", floor, "\"/>\n<text class=\"mid title\" x=\"",
                  Place((kLeft + kWidth - kRight) / 2), "\" y=\"", Place(kHeight - 6), "\">",
                  EscapeHtml(x_.title), "</text>\n", marks_, "</svg>\n");
  return svg;
}

std::string SeriesClass(size_t colour) {
  return absl::StrCat("s", colour % kColours);
}

std::string LegendHtml(const std::vector<std::string>& names, bool areas) {
  std::string html = "<p class=\"legend\">";
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&html,
                    "<span><svg class=\"sample\" viewBox=\"0 0 22 10\" aria-hidden=\"true\">",
                    areas ? "<rect class=\"area " : "<line class=\"line ", SeriesClass(i),
                    areas ? "\" x=\"1\" y=\"1\" width=\"20\" height=\"8\"/>"
                          : "\" x1=\"0\" x2=\"22\" y1=\"5\" y2=\"5\"/>",
                    "</svg>", EscapeHtml(names[i]), "</span>");
  }
  return html + "</p>\n";
}

std::string FigureHtml(absl::string_view title, const std::string& svg, const std::string& legend) {
  return absl::StrCat("<figure><figcaption>", EscapeHtml(title), "</figcaption>\n", svg, legend,
                      "</figure>\n");
}

}  // namespace cistern::report
