// Curves over the samples of a run, and what its time was spent on.
#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/report/html.h"
#include "worker/report/page_sections.h"
#include "worker/report/plot.h"

namespace cistern::report {
namespace {

constexpr size_t kMaxPoints = 300;  // more cannot be seen at this width

using Read = std::function<std::optional<double>(const HistoryPoint&)>;

PlotPoints PointsOf(const std::vector<HistoryPoint>& points, const Read& read) {
  PlotPoints found;
  for (const HistoryPoint& point : points) {
    if (const std::optional<double> value = read(point)) found.emplace_back(point.samples, *value);
  }
  return Thin(found, kMaxPoints);
}

// A chart of one curve per run; empty if no run has a point.
std::string Curves(const std::vector<RunView>& runs, absl::string_view title, bool evals,
                   const Read& read, bool from_zero = false) {
  std::vector<PlotPoints> curves;
  double high_x = 0, low = 1e300, high = -1e300;
  size_t longest = 0;
  for (const RunView& run : runs) {
    curves.push_back(PointsOf(evals ? run.history.evals : run.history.train, read));
    longest = std::max(longest, curves.back().size());
    for (const auto& [x, y] : curves.back()) {
      high_x = std::max(high_x, x);
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  if (longest == 0) return "";
  if (from_zero) low = 0;
  const double margin = 0.04 * (high - low);
  Plot plot(RoundAxis(0, high_x, "samples"),
            RoundAxis(from_zero ? 0 : low - margin, high + margin, ""),
            absl::StrCat(title, " over the samples, ", absl::StrFormat("%.6g to %.6g", low, high)));
  for (size_t i = 0; i < curves.size(); ++i) plot.Line(curves[i], i, longest <= 40);
  return FigureHtml(title, plot.Svg());
}

// The samples of an epoch, if an evaluation records them.
std::optional<double> EpochSamples(const RunView& run) {
  for (auto point = run.history.evals.rbegin(); point != run.history.evals.rend(); ++point) {
    if (point->epoch && *point->epoch >= 1) return point->samples / *point->epoch;
  }
  return std::nullopt;
}

struct PhaseShare {
  std::string name;
  double seconds = 0;
};

// The phases of a run in the order of a pass; unknown ones last.
std::vector<PhaseShare> PhasesOf(const RunHistory& history) {
  constexpr std::pair<const char*, const char*> kKnown[] = {{"train", "training"},
                                                            {"read", "waiting for data and rows"},
                                                            {"commit", "committing"},
                                                            {"evaluate", "evaluating"},
                                                            {"save", "saving"}};
  std::map<std::string, double> left = history.phases;
  std::vector<PhaseShare> phases;
  for (const auto& [key, name] : kKnown) {
    const auto found = left.find(key);
    if (found == left.end()) continue;
    phases.push_back({name, found->second});
    left.erase(found);
  }
  for (const auto& [key, seconds] : left) phases.push_back({key, seconds});
  return phases;
}

std::string Phases(const RunView& run) {
  const std::vector<PhaseShare> phases = PhasesOf(run.history);
  double total = 0;
  std::vector<std::string> names;
  for (const PhaseShare& phase : phases) {
    total += phase.seconds;
    names.push_back(phase.name);
  }
  if (total <= 0) return "";
  std::string bar = "<div class=\"shares\" aria-hidden=\"true\">";
  HtmlTable table({{"", false}, {"Time"}, {"Share"}});
  for (size_t i = 0; i < phases.size(); ++i) {
    const double share = phases[i].seconds / total;
    absl::StrAppendFormat(&bar, "<i class=\"%s\" style=\"width:%.2f%%\"></i>", SeriesClass(i),
                          100 * share);
    table.Add({EscapeHtml(phases[i].name), SecondsHtml(phases[i].seconds), PercentHtml(share)});
  }
  return absl::StrCat("<h3>", EscapeHtml(run.name), "</h3>\n", bar, "</div>\n",
                      LegendHtml(names, true), table.Html(""));
}

}  // namespace

std::string CurvesSection(const std::vector<RunView>& runs) {
  const std::string charts = absl::StrCat(
      Curves(runs, "Training loss", false, [](const HistoryPoint& p) { return p.loss; }),
      Curves(runs, "Evaluation AUC", true, [](const HistoryPoint& p) { return p.auc; }),
      Curves(runs, "Evaluation log loss", true, [](const HistoryPoint& p) { return p.logloss; }),
      Curves(
          runs, "Learning rate", false, [](const HistoryPoint& p) { return p.lr; }, true));
  if (charts.empty()) return "";
  std::string body = runs.size() > 1 ? LegendHtml(NamesOf(runs)) : "";
  absl::StrAppend(&body, "<div class=\"charts\">\n", charts, "</div>\n");
  if (const std::optional<double> samples = EpochSamples(runs.front())) {
    body += NoteHtml(
        absl::StrCat("An epoch has ", CountHtml(static_cast<uint64_t>(*samples)), " samples."));
  }
  return SectionHtml("curves", "Learning curves", body);
}

std::string TimeSection(const std::vector<RunView>& runs) {
  std::string body;
  for (const RunView& run : runs) body += Phases(run);
  const std::string rate = Curves(
      runs, "Samples a second", false, [](const HistoryPoint& p) { return p.samples_per_second; },
      true);
  if (!rate.empty()) absl::StrAppend(&body, "<div class=\"charts\">", rate, "</div>\n");
  return body.empty() ? "" : SectionHtml("time", "Time", body);
}

}  // namespace cistern::report
