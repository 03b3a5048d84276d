// cistern table hist: the histogram of one field over all rows of a table.
#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_format.h"
#include "app/table/field_histogram.h"
#include "cli/command/table_commands.h"
#include "cli/terminal/aligned_text.h"

namespace cistern::cli {
namespace {

constexpr double kQuantiles[] = {0.01, 0.1, 0.5, 0.9, 0.99, 0.999};
constexpr double kBarColumns = 40;

std::string NumberText(double x) {
  return absl::StrFormat("%.6g", x);
}

Report ReportOf(const std::string& table, const app::FieldHistogram& found) {
  const app::Histogram& histogram = found.histogram;
  Report report;
  report.json["table"] = table;
  report.json["field"] = found.field;
  report.json["rows"] = found.rows;
  report.json["count"] = histogram.count();
  report.json["nan"] = histogram.nan_count();
  report.json["min"] = histogram.min();
  report.json["mean"] = histogram.mean();
  report.json["max"] = histogram.max();
  report.json["quantiles"] = nlohmann::ordered_json::object();
  report.text = absl::StrCat(
      "table ", table, "  field ", found.field, "  ", histogram.count(), " of ", found.rows,
      " rows",
      histogram.nan_count() > 0 ? absl::StrCat(", ", histogram.nan_count(), " are not a number")
                                : "",
      "\nmin ", NumberText(histogram.min()), "  mean ", NumberText(histogram.mean()), "  max ",
      NumberText(histogram.max()), "\n");
  for (const double q : kQuantiles) {
    const std::string name = absl::StrFormat("p%g", q * 100);
    report.json["quantiles"][name] = histogram.Quantile(q);
    absl::StrAppend(&report.text, q == kQuantiles[0] ? "" : "  ", name, " ",
                    NumberText(histogram.Quantile(q)));
  }
  report.json["buckets"] = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> lines = {{"FROM", "TO", "ROWS", ""}};
  uint64_t most = 1;
  for (const app::Histogram::Bucket& bucket : histogram.Buckets())
    most = std::max(most, bucket.count);
  for (const app::Histogram::Bucket& bucket : histogram.Buckets()) {
    report.json["buckets"].push_back(
        {{"low", bucket.low}, {"high", bucket.high}, {"count", bucket.count}});
    const double share = static_cast<double>(bucket.count) / static_cast<double>(most);
    lines.push_back({NumberText(bucket.low), NumberText(bucket.high), absl::StrCat(bucket.count),
                     std::string(static_cast<size_t>(std::ceil(share * kBarColumns)), '#')});
  }
  absl::StrAppend(&report.text, "\n");
  if (lines.size() > 1) absl::StrAppend(&report.text, AlignedText(lines));
  return report;
}

}  // namespace

absl::StatusOr<Report> RunTableHistogram(const TableFlags& flags) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  const absl::StatusOr<app::FieldHistogram> found =
      app::HistogramOf(fleet->client(), flags.table, flags.field);
  if (!found.ok()) return app::WithFleetFix(found.status(), flags.fleet);
  return ReportOf(flags.table, *found);
}

}  // namespace cistern::cli
