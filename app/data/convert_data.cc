#include "app/data/convert_data.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "app/data/missing_file.h"
#include "worker/data/prepare/table_plan.h"
#include "worker/data/prepare/unseen_values.h"

namespace cistern::app {
namespace {

constexpr uint64_t kRowsOfOneLabel = 100;  // fewer can be of one class by chance

void NoteFindings(const data::ConvertSummary& summary, bool by_recipe, const JobCalls& calls) {
  if (!summary.not_utf8.empty()) {
    calls.Note(absl::StrCat(
        "note: ", summary.not_utf8,
        " holds text that is not UTF-8 (Latin-1?). Its bytes were converted as they are: the same "
        "words in UTF-8, in other files or requests, would have other keys (iconv -f latin1 -t "
        "utf8)"));
  }
  for (const std::string& sentence : summary.written_numbers) calls.Note("note: " + sentence);
  if (by_recipe) {
    for (const std::string& sentence : data::UnseenValues(summary, nullptr)) {
      calls.Note("note: " + sentence);
    }
  }
  const bool one_class = summary.positives == 0 || summary.positives == summary.samples;
  if (one_class && summary.samples >= kRowsOfOneLabel) {
    calls.Note(absl::StrCat("note: all ", summary.samples, " labels are ",
                            summary.positives == 0 ? "0" : "above 0",
                            ": nothing can be learned from them, nor measured with them"));
  }
  for (const auto& [column, values] : summary.added) {
    calls.Note(absl::StrCat("note: ", values, " values of '", column,
                            "' are new and get keys of their own"));
  }
}

}  // namespace

absl::StatusOr<data::ConvertSummary> ConvertData(ConvertDataOptions options, const JobCalls& calls,
                                                 const data::ConvertProgressCallback& progress) {
  const std::string option = OptionBesideRecipe(options);
  if (!option.empty()) {
    return WithFix(
        WithOptions(absl::InvalidArgumentError(
                        "the recipe defines how the data is encoded, and the options disagree"),
                    {option, "recipe"}),
        "leave one of them out");
  }
  options.find_numbers = options.recipe.empty();
  if (options.part != DataPart::kAll) {
    options.select = [held_out = options.part == DataPart::kTest](
                         uint64_t row, const std::vector<absl::string_view>& fields) {
      return data::HeldOutRows().Contains(row, fields) == held_out;
    };
  }
  const absl::StatusOr<data::ConvertSummary> summary =
      Convert(options, [&](const data::ConvertProgress& done) {
        return calls.CheckStop().ok() && (progress == nullptr || progress(done));
      });
  if (!summary.ok()) return MissingIsWrong(summary.status());
  NoteFindings(*summary, !options.recipe.empty(), calls);
  return summary;
}

std::string OptionBesideRecipe(const data::ConvertOptions& given) {
  if (given.recipe.empty()) return "";
  const data::ConvertOptions none;
  const std::pair<const char*, bool> others[] = {
      {"format", given.format != none.format},
      {"libsvm_slots", given.libsvm_slots != none.libsvm_slots},
      {"any_value", given.any_value},
      {"label", given.label != none.label},
      {"label_threshold", given.label_threshold.has_value()},
      {"positive", !given.positive.empty()},
      {"weight", !given.weight.empty()},
      {"dense", !given.dense.empty()},
      {"dense_transform", given.dense_transform != none.dense_transform},
      {"log1p", !given.log1p.empty()},
      {"dense_missing", given.dense_missing != 0},
      {"sparse", !given.sparse.empty()},
      {"bucket", !given.bucket.empty()},
      {"cross", !given.cross.empty()},
      {"share", !given.share.empty()},
      {"ignore", !given.ignore.empty()},
      {"multi", !given.multi.empty()},
      {"key_weights", !given.key_weights.empty()},
      {"separator", given.separator != none.separator},
      {"trim", given.trim},
      {"missing_values", !given.missing_values.empty()},
      {"missing", given.missing != none.missing},
      {"keys", given.keys != none.keys},
      {"key_bits", given.key_bits != none.key_bits},
      {"rare", given.rare != none.rare},
      {"min_count", given.min_count != none.min_count},
      {"fit_rows", given.fit_rows != 0},
      {"vocab_in", !given.vocab_in.empty()},
      {"vocab_out", !given.vocab_out.empty()}};
  for (const auto& [option, is_given] : others) {
    if (is_given) return option;
  }
  return "";
}

uint32_t LabelDimOf(const data::ConvertSummary& summary) {
  return summary.shape.label_dim - (summary.shape.weighted ? 1 : 0);
}

std::string WeightFaultOf(const data::ConvertSummary& summary) {
  const bool has_both =
      summary.labels.size() == 1 && summary.positives > 0 && summary.positives < summary.samples;
  const bool positives = summary.positive_weight > 0;
  const bool negatives = summary.weight > summary.positive_weight;
  if (has_both && positives != negatives) {
    return absl::StrCat("the weights of all ", positives ? "negative" : "positive",
                        " labels are 0");
  }
  if (summary.samples < kMinEqualSamples || summary.weight_squares <= 0) return "";
  const double equal = summary.weight * summary.weight / summary.weight_squares;
  if (equal >= kMinEqualSamples) return "";
  return absl::StrFormat(
      "their weights make %d rows count as %.3g: a few have nearly all of the "
      "weight",
      summary.samples, equal);
}

nlohmann::ordered_json JsonOf(const data::ConvertSummary& summary) {
  nlohmann::ordered_json json;
  json["samples"] = summary.samples;
  json["positives"] = summary.positives;
  json["left_out"] = summary.left_out;
  json["files"] = summary.files;
  json["bytes"] = summary.bytes;
  json["file_list"] = summary.file_list;
  json["recipe"] = summary.recipe;
  json["label_dim"] = LabelDimOf(summary);
  json["sample_weights"] = summary.shape.weighted;
  json["key_weights"] = !summary.shape.key_weights.empty();
  json["dense_dim"] = summary.shape.dense_dim;
  json["slot_num"] = summary.slots.size();
  json["max_feature_num_per_sample"] = summary.max_keys;
  json["vocabulary"] = summary.vocabulary;
  json["dense"] = nlohmann::ordered_json::array();
  for (const auto& dense : summary.dense) {
    json["dense"].push_back({{"column", dense.column}, {"missing", dense.missing}});
  }
  json["slots"] = nlohmann::ordered_json::array();
  for (const auto& slot : summary.slots) {
    json["slots"].push_back({{"column", slot.column},
                             {"distinct", slot.distinct},
                             {"distinct_exact", slot.distinct_exact},
                             {"missing", slot.missing},
                             {"rare", slot.rare},
                             {"max_keys", slot.max_keys}});
  }
  return json;
}

}  // namespace cistern::app
