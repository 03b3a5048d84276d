// Calibration and the distribution of scores, from the last evaluation.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/report/html.h"
#include "worker/report/page_sections.h"
#include "worker/report/plot.h"

namespace cistern::report {
namespace {

double LogOdds(double probability) {
  const double inside = std::clamp(probability, 1e-7, 1 - 1e-7);
  return std::log(inside / (1 - inside));
}

std::string Digits(double probability) {
  return absl::StrFormat(probability < 0.01 ? "%.5f" : "%.4f", probability);
}

// Observed against predicted, one point per decile, on axes of log-odds.
std::string Reliability(const std::vector<RunView>& runs) {
  std::vector<PlotPoints> lines;
  double low = 1e9, high = -1e9;
  for (const RunView& run : runs) {
    lines.emplace_back();
    if (!run.scores) continue;
    for (const ScorePart& part : CutByScore(run.scores->bins, 10)) {
      const double total = part.sum.total();
      // Half a positive more and half a negative more keep a part of one class on the chart.
      const double half = .5 * total / static_cast<double>(part.sum.samples);
      const double x = LogOdds(part.sum.predicted / total);
      const double y = LogOdds((part.sum.positives + half) / (total + 2 * half));
      lines.back().emplace_back(x, y);
      low = std::min({low, x, y});
      high = std::max({high, x, y});
    }
  }
  if (low > high) return "";
  const double margin = std::max(0.05 * (high - low), 0.05);
  low -= margin;
  high += margin;
  PlotAxis y = LogOddsAxis(low, high, "");
  Plot plot(LogOddsAxis(low, high, "mean prediction"), std::move(y),
            "Share of positives against mean prediction, by decile");
  plot.Reference(low, low, high, high);
  for (size_t i = 0; i < lines.size(); ++i) plot.Line(lines[i], i, true);
  return FigureHtml("Share of positives by mean prediction, per decile", plot.Svg());
}

// The share of each class by score. Bins are merged until about 48 cover the range.
std::string Histogram(const RunView& run) {
  const std::vector<ScoreBin>& bins = run.scores->bins;
  const double total_positives = run.scores->positives;
  const double total_negatives = run.scores->total() - total_positives;
  const int32_t first = bins.front().index, last = bins.back().index;
  const int32_t merged = std::max(1, (last - first + 48) / 48);
  std::vector<double> positives(static_cast<size_t>((last - first) / merged + 1)),
      negatives(positives.size());
  for (const ScoreBin& bin : bins) {
    const auto at = static_cast<size_t>((bin.index - first) / merged);
    positives[at] += bin.positives / std::max(total_positives, 1e-9);
    negatives[at] += (bin.total() - bin.positives) / std::max(total_negatives, 1e-9);
  }
  const double width = static_cast<double>(merged) / kBinsPerUnit;
  const double low = static_cast<double>(first) / kBinsPerUnit;
  PlotPoints of_positives, of_negatives;
  double high = 0;
  for (size_t i = 0; i < positives.size(); ++i) {
    const double x = low + static_cast<double>(i) * width;
    of_positives.emplace_back(x, positives[i]);
    of_negatives.emplace_back(x, negatives[i]);
    high = std::max({high, positives[i], negatives[i]});
  }
  PlotAxis y = RoundAxis(0, high * 1.05, "");
  for (PlotAxis::Tick& tick : y.ticks) tick.label = absl::StrFormat("%g %%", 100 * tick.at);
  const double end = low + static_cast<double>(positives.size()) * width;
  Plot plot(LogOddsAxis(low, end, "prediction"), std::move(y),
            "Histogram of the predictions of negatives and positives");
  plot.Steps(of_negatives, width, 0);
  plot.Steps(of_positives, width, 1);
  return FigureHtml(absl::StrCat("Scores", " of ", run.name), plot.Svg(),
                    LegendHtml({"negatives", "positives"}, true));
}

std::string DecileTable(const RunView& run) {
  HtmlTable table({{"Decile"},
                   {"Predictions", true, "lowest and highest prediction, to 3 % of its odds"},
                   {"Samples"},
                   {"Mean prediction"},
                   {"Share of positives"},
                   {"Ratio", true, "mean prediction / share of positives"},
                   {"AUC", true, "among the samples of this part only"}});
  size_t number = 0;
  for (const ScorePart& part : CutByScore(run.scores->bins, 10)) {
    const double total = part.sum.total();
    table.Add({absl::StrCat(++number),
               absl::StrCat(Digits(PredictionAt(part.sum.index)), " \xE2\x80\x93 ",
                            Digits(PredictionAt(part.last + 1))),
               CountHtml(part.sum.samples), Digits(part.sum.predicted / total),
               Digits(part.sum.positives / total), NumberHtml(CalibrationOf(part.sum), 3),
               NumberHtml(part.auc, 4)});
  }
  return table.Html(absl::StrCat("Deciles of the predictions of ", run.name));
}

}  // namespace

std::string ScoresSection(const std::vector<RunView>& runs) {
  std::string histograms, tables;
  for (const RunView& run : runs) {
    if (!run.scores || run.scores->bins.empty()) continue;
    histograms += Histogram(run);
    const std::string table = DecileTable(run);
    tables += runs.size() == 1 ? table
                               : absl::StrCat("<details><summary>Deciles of ", EscapeHtml(run.name),
                                              "</summary>\n", table, "</details>\n");
  }
  if (tables.empty()) return "";
  return SectionHtml(
      "scores", "Calibration and scores",
      absl::StrCat(NoteHtml("From the evaluation of the final state. A calibrated model follows "
                            "the dotted line. Axes of predictions are log-odds."),
                   runs.size() > 1 ? LegendHtml(NamesOf(runs)) : "", "<div class=\"charts\">\n",
                   Reliability(runs), histograms, "</div>\n<h3>Deciles</h3>\n", tables));
}

}  // namespace cistern::report
