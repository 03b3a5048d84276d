// cistern table hist: the histogram of one field over all rows of a table.
#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/command/table_commands.h"
#include "cli/terminal/aligned_text.h"
#include "cli/terminal/exit_code.h"
#include "cli/terminal/histogram.h"
#include "common/base/nearest_name.h"

namespace cistern {
namespace {

constexpr char kNorm[] = "norm";
constexpr double kQuantiles[] = {0.01, 0.1, 0.5, 0.9, 0.99, 0.999};
constexpr double kBarColumns = 40;

// Reads the counted field of a row; nullopt if the row does not have the field (an embedx that does
// not exist yet).
class RowField {
 public:
  // name: empty: the norm of the weights of an embedding table, the shows of a ctr table.
  static absl::StatusOr<RowField> Find(const ValueLayout& layout, std::string name) {
    if (name.empty()) name = layout.FindField("show") != nullptr ? "show" : kNorm;
    if (name == kNorm && layout.dim() > 0) return RowField(layout, name, -1);
    const std::vector<std::string> names = layout.FieldNames(true);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) {
      return RowField(layout, name, static_cast<int>(found - names.begin()));
    }
    std::vector<std::string> known = names;
    known.push_back(kNorm);
    return WithFix(absl::InvalidArgumentError(absl::StrCat("a row has no field '", name, "'")),
                   absl::StrCat("fields: ", absl::StrJoin(known, ", ")));
  }
  const std::string& name() const { return name_; }

  bool Of(const float* value, bool has_embedx, double* out) const {
    if (place_ >= 0) {
      const std::vector<double> fields = layout_.FieldValues(value, has_embedx);
      if (static_cast<size_t>(place_) >= fields.size()) return false;
      *out = fields[static_cast<size_t>(place_)];
      return true;
    }
    if (!has_embedx) return false;
    double sum = 0;
    for (uint32_t i = 0; i < layout_.dim(); ++i) {
      const double w = value[layout_.weight_index() + i];
      sum += w * w;
    }
    *out = std::sqrt(sum);
    return true;
  }

 private:
  RowField(const ValueLayout& layout, std::string name, int place)
      : layout_(layout), name_(std::move(name)), place_(place) {}

  ValueLayout layout_;
  std::string name_;
  int place_;  // index in FieldValues; -1: the L2 norm of the weights
};

std::string NumberText(double x) {
  return absl::StrFormat("%.6g", x);
}

Report ReportOf(const std::string& table, const std::string& field, uint64_t rows,
                const Histogram& histogram) {
  Report report;
  report.json["table"] = table;
  report.json["field"] = field;
  report.json["rows"] = rows;
  report.json["count"] = histogram.count();
  report.json["nan"] = histogram.nan_count();
  report.json["min"] = histogram.min();
  report.json["mean"] = histogram.mean();
  report.json["max"] = histogram.max();
  report.json["quantiles"] = nlohmann::ordered_json::object();
  report.text = absl::StrCat(
      "table ", table, "  field ", field, "  ", histogram.count(), " of ", rows, " rows",
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
  for (const Histogram::Bucket& bucket : histogram.Buckets()) most = std::max(most, bucket.count);
  for (const Histogram::Bucket& bucket : histogram.Buckets()) {
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

absl::StatusOr<TableId> FindSparse(const v1::Schema& schema, const std::string& name) {
  std::vector<std::string> names;
  for (int t = 0; t < schema.tables_size(); ++t) {
    if (schema.tables(t).name() == name) return static_cast<TableId>(t);
    names.push_back(schema.tables(t).name());
  }
  for (const v1::DenseTableSpec& dense : schema.dense_tables()) {
    if (dense.name() != name) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("table '", name, "' is dense: it has no rows of features"));
  }
  const std::string nearest = NearestName(name, names);
  return WithFix(absl::NotFoundError(absl::StrCat("the servers have no table '", name, "'")),
                 nearest.empty() ? "see cistern table ls --servers ..."
                                 : absl::StrCat("did you mean '", nearest, "'?"));
}

}  // namespace

absl::StatusOr<Report> TableHistogram(ParameterClient& client, const std::string& table,
                                      const std::string& field_name) {
  CISTERN_ASSIGN_OR_RETURN(const TableId id, FindSparse(client.schema(), table));
  CISTERN_ASSIGN_OR_RETURN(const RowField field, RowField::Find(client.layout(id), field_name));
  Histogram histogram;
  uint64_t rows = 0;
  CISTERN_RETURN_IF_ERROR(
      client.Scan(id, [&](uint32_t, Key, const float* value, bool has_embedx) -> absl::Status {
        double x = 0;
        ++rows;
        if (field.Of(value, has_embedx, &x)) histogram.Add(x);
        return absl::OkStatus();
      }));
  return ReportOf(table, field.name(), rows, histogram);
}

absl::StatusOr<Report> RunTableHistogram(const TableFlags& flags) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<app::FleetSession> fleet,
                           app::FleetSession::Open(flags.fleet));
  absl::StatusOr<Report> report = TableHistogram(fleet->client(), flags.table, flags.field);
  if (!report.ok()) return app::WithFleetFix(report.status(), flags.fleet);
  return report;
}

}  // namespace cistern
