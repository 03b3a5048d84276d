// Formats the summary of inspect.h as text and as JSON.
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "worker/data/prepare/inspect.h"

namespace cistern::data {
namespace {

const char* CheckName(NormCheck check) {
  return check == NormCheck::kSum ? "Sum" : "None";
}

void AppendNumbers(const char* name, const std::vector<NormSummary::Number>& numbers,
                   uint64_t samples, std::string* text) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    const NormSummary::Number& x = numbers[i];
    absl::StrAppendFormat(text, "%-5s %4d  mean %-12.6g min %-12.6g max %-12.6g zero %.1f%%\n",
                          name, i, x.mean, x.min, x.max,
                          samples == 0 ? 0.0 : 100.0 * x.zeros / static_cast<double>(samples));
  }
}

void AppendSlots(const NormSummary& summary, std::string* text) {
  const double samples = static_cast<double>(summary.samples);
  for (size_t i = 0; i < summary.slots.size(); ++i) {
    const NormSummary::Slot& slot = summary.slots[i];
    absl::StrAppendFormat(text,
                          "slot  %4d  keys/sample %.4g (max %d, none in %.1f%%)  distinct %s%d", i,
                          samples == 0 ? 0.0 : slot.keys / samples, slot.max_keys,
                          samples == 0 ? 0.0 : 100.0 * slot.empty / samples,
                          slot.distinct_exact ? "" : "about ", slot.distinct);
    for (size_t k = 0; k < slot.top.size(); ++k) {
      absl::StrAppendFormat(text, "%s%d x%d", k == 0 ? "  top " : ", ", slot.top[k].first,
                            slot.top[k].second);
    }
    *text += "\n";
  }
}

nlohmann::json NumbersJson(const std::vector<NormSummary::Number>& numbers) {
  nlohmann::json array = nlohmann::json::array();
  for (const NormSummary::Number& x : numbers) {
    array.push_back({{"mean", x.mean}, {"min", x.min}, {"max", x.max}, {"zeros", x.zeros}});
  }
  return array;
}

nlohmann::json SlotJson(const NormSummary::Slot& slot) {
  nlohmann::json top = nlohmann::json::array();
  for (const auto& [key, count] : slot.top) top.push_back({{"key", key}, {"count", count}});
  return {
      {"keys", slot.keys},         {"empty", slot.empty}, {"max_keys", slot.max_keys},
      {"distinct", slot.distinct}, {"top", top},          {"distinct_exact", slot.distinct_exact}};
}

}  // namespace

std::string InspectionText(const NormSummary& summary) {
  std::string text = FormatName(summary.format);
  if (summary.format == DataFormat::kNorm) {
    text = absl::StrFormat(
        "Norm, check %s, %d-bit keys%s (\"check\": \"%s\", \"input_key_type\": \"%s\")\n",
        CheckName(summary.check), summary.key_bits, summary.key_bits_guessed ? " (guessed)" : "",
        CheckName(summary.check), summary.key_bits == 64 ? "I64" : "I32");
  } else {
    text += HoldsKeyLists(summary.format) ? "\n" : ", keys with the offsets of slot_size_array\n";
  }
  absl::StrAppendFormat(&text, "%d files, %d records, %d inspected\n", summary.files,
                        summary.records, summary.samples);
  absl::StrAppendFormat(
      &text, "label_dim %d, dense_dim %d, slot_num %d, max_feature_num_per_sample at least %d\n",
      summary.shape.label_dim, summary.shape.dense_dim, summary.shape.slot_nums[0],
      summary.max_keys);
  AppendNumbers("label", summary.label, summary.samples, &text);
  AppendNumbers("dense", summary.dense, summary.samples, &text);
  AppendSlots(summary, &text);
  for (size_t i = 0; i < summary.first.size(); ++i) {
    absl::StrAppendFormat(&text, "sample %d  %s\n", i, summary.first[i]);
  }
  return text;
}

std::string InspectionJson(const NormSummary& summary) {
  nlohmann::json slots = nlohmann::json::array();
  for (const NormSummary::Slot& slot : summary.slots) slots.push_back(SlotJson(slot));
  const nlohmann::json json = {{"format", FormatName(summary.format)},
                               {"check", CheckName(summary.check)},
                               {"key_bits", summary.key_bits},
                               {"key_bits_guessed", summary.key_bits_guessed},
                               {"files", summary.files},
                               {"records", summary.records},
                               {"samples", summary.samples},
                               {"label_dim", summary.shape.label_dim},
                               {"dense_dim", summary.shape.dense_dim},
                               {"slot_num", summary.shape.slot_nums[0]},
                               {"max_keys", summary.max_keys},
                               {"label", NumbersJson(summary.label)},
                               {"dense", NumbersJson(summary.dense)},
                               {"slots", slots},
                               {"first", summary.first}};
  return json.dump();
}

}  // namespace cistern::data
