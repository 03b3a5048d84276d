#include "app/data/criteo_data.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace cistern::app {
namespace {

// "C1" -> 0; nullopt if `name` is not a sparse column.
std::optional<uint32_t> CriteoColumnOf(absl::string_view name) {
  uint32_t number = 0;
  const bool is_column = absl::ConsumePrefix(&name, "C") && absl::SimpleAtoi(name, &number);
  if (!is_column || number < 1 || number > data::kCriteoSparse) return std::nullopt;
  return number - 1;
}

absl::StatusOr<data::CriteoCrosses> ParseCrosses(const std::vector<std::string>& names) {
  data::CriteoCrosses crosses;
  for (const std::string& name : names) {
    const std::vector<std::string> columns = absl::StrSplit(name, '_');
    const std::optional<uint32_t> first = CriteoColumnOf(columns[0]);
    const std::optional<uint32_t> second = CriteoColumnOf(columns.size() == 2 ? columns[1] : "");
    if (!first || !second) {
      return WithOptions(
          absl::InvalidArgumentError(absl::StrCat(
              "the cross '", name, "': expected two columns of C1 to C26, as in C1_C2,C3_C4")),
          {"cross"});
    }
    crosses.emplace_back(*first, *second);
  }
  return crosses;
}

}  // namespace

absl::StatusOr<CriteoData> PrepareCriteoData(CriteoDataOptions options, const JobCalls& calls) {
  CISTERN_ASSIGN_OR_RETURN(options.crosses, ParseCrosses(options.cross));
  CISTERN_ASSIGN_OR_RETURN(data::CriteoSummary summary,
                           data::PrepareCriteo(options, [&](uint64_t rows) {
                             if (calls.amount) calls.amount({"reading", "rows", rows, 0});
                             return calls.CheckStop().ok();
                           }));
  CriteoData data = {std::move(summary)};
  data.format = options.format;
  data.crosses = options.crosses.size();
  const bool one_slot = data.crosses > 0 && options.format == data::DataFormat::kNorm;
  data.wide_slots = one_slot ? 1 : data.crosses;
  return data;
}

nlohmann::ordered_json JsonOf(const CriteoData& data) {
  return {{"format", data::FormatName(data.format)},
          {"source", data.train_source},
          {"eval_source", data.test_source},
          {"train_samples", data.train_samples},
          {"test_samples", data.test_samples},
          {"train_positives", data.train_positives},
          {"test_positives", data.test_positives},
          {"clipped", data.clipped},
          {"slot_size_array", data.slot_sizes},
          {"wide_slots", data.wide_slots},
          {"slots", data.wide_slots + data::kCriteoSparse},
          {"went_on", data.resumed}};
}

}  // namespace cistern::app
