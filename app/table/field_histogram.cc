#include "app/table/field_histogram.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"
#include "app/table/tables.h"

namespace cistern::app {
namespace {

constexpr char kNorm[] = "norm";

// Reads the counted field of a row; nullopt if the row does not have the field (an embedx that does
// not exist yet).
class RowField {
 public:
  // An empty name means the norm of the weights in an embedding table, the shows in a ctr table.
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

}  // namespace

absl::StatusOr<FieldHistogram> HistogramOf(ParameterClient& client, const std::string& table,
                                           const std::string& field_name) {
  CISTERN_ASSIGN_OR_RETURN(const TableId id, FindSparseTable(client.schema(), table));
  CISTERN_ASSIGN_OR_RETURN(const RowField field, RowField::Find(client.layout(id), field_name));
  FieldHistogram result;
  result.field = field.name();
  CISTERN_RETURN_IF_ERROR(
      client.Scan(id, [&](uint32_t, Key, const float* value, bool has_embedx) -> absl::Status {
        double x = 0;
        ++result.rows;
        if (field.Of(value, has_embedx, &x)) result.histogram.Add(x);
        return absl::OkStatus();
      }));
  return result;
}

}  // namespace cistern::app
