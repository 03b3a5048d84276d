#include "worker/data/prepare/sample_weight.h"

#include "worker/data/format/label_check.h"
#include "worker/data/prepare/column_name.h"
#include "worker/data/recipe/weight_text.h"

namespace cistern::data {
namespace {

bool HoldsNumbers(const ColumnProfile& column) {
  return column.type == ColumnType::kInteger || column.type == ColumnType::kNumber;
}

}  // namespace

bool LooksLikeSampleWeight(const ColumnProfile& column) {
  if (!HoldsNumbers(column) || column.min < 0) return false;
  if (IsSampleWeightName(column.name)) return true;
  const std::vector<std::string> words = WordsOf(column.name);
  constexpr double kUsualLow = 0.2, kUsualHigh = 5;  // of the mean; of a weight in kg it is not
  return words.size() == 1 && HasWord(column.name, {"weight", "weights", "wt"}) &&
         column.mean >= kUsualLow && column.mean <= kUsualHigh;
}

absl::Status CheckSampleWeight(const ColumnProfile& column) {
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("column '", column.name, "' ", why));
  };
  if (!HoldsNumbers(column)) {
    return refuse(absl::StrCat("holds ", Word(column.type), ", not weights (numbers from 0 on)"));
  }
  if (column.min < 0) {
    return refuse(absl::StrCat("holds ", column.min, ", and a weight is a number from 0 on"));
  }
  if (column.infinite > 0 || column.max > static_cast<double>(kSampleWeightMax)) {
    return refuse(absl::StrCat("holds ",
                               column.infinite > 0 ? "infinite numbers" : absl::StrCat(column.max),
                               ", and a weight is at most ", kSampleWeightMax));
  }
  if (column.max <= 0) return refuse("holds no weight above 0: nothing would be learned");
  if (column.missing > 0) {
    return refuse(absl::StrCat("has no value in ", column.missing,
                               " rows, and every row needs a weight: 1 if it counts once"));
  }
  return absl::OkStatus();
}

double WeightedShareOfPositives(const TableProfile& profile, const LabelChoice& label,
                                size_t weight) {
  double positives = 0, all = 0;
  for (const std::vector<std::string>& row : profile.sample) {
    const absl::StatusOr<float> read = ReadWeight(row[weight]);
    if (!read.ok()) continue;  // conversion reports it
    all += static_cast<double>(*read);
    if (label.IsPositive(row[label.column])) positives += static_cast<double>(*read);
  }
  return all > 0 ? positives / all : 0;
}

}  // namespace cistern::data
