#include "worker/data/recipe/weight_text.h"

#include "common/base/shown_text.h"
#include "worker/data/format/label_check.h"
#include "worker/data/recipe/row_encoder.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {

absl::StatusOr<float> ReadWeight(absl::string_view field) {
  const std::string shown = ShownText(field, 40);
  const std::string rule = absl::StrCat("a weight is a number from 0 to ", kSampleWeightMax);
  double value = 0;
  const NumberKind kind = ReadNumber(field, &value);
  if (kind == NumberKind::kNone) {
    return absl::DataLossError(absl::StrCat("'", shown, "' is not a number: ", rule));
  }
  if (kind != NumberKind::kFinite || !IsSampleWeight(value)) {
    return absl::OutOfRangeError(absl::StrCat("the weight is ", shown, ": ", rule));
  }
  return static_cast<float>(value);
}

absl::StatusOr<float> RowEncoder::WeightOf(absl::Span<const absl::string_view> fields,
                                           const RowPlaces& places, Labels labels) const {
  if (places.weight == RowPlaces::kAbsent) return 1.0f;
  const absl::string_view field = fields[places.weight];
  const bool missing = IsMissing(field);
  if (missing && labels == Labels::kOptional) return 1.0f;
  absl::StatusOr<float> weight = ReadWeight(field);
  if (missing) {
    weight = absl::DataLossError("the weight is missing: a sample that counts once has weight 1");
  }
  if (weight.ok()) return weight;
  return AddContext(weight.status(), absl::StrCat("column '", recipe_.weight, "'"));
}

}  // namespace cistern::data
