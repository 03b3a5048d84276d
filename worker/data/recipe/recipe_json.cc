#include "worker/data/recipe/recipe_json.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/escaping.h"
#include "common/base/hash_text.h"

namespace cistern::data {
namespace {

using Json = nlohmann::ordered_json;

template <typename Words, typename T>
const char* WordOf(const Words& words, T value) {
  for (const auto& [each, word] : words) {
    if (each == value) return word;
  }
  return "auto";
}

// Names and values are bytes, which JSON cannot hold unless they are UTF-8: other texts become
// {"hex": "8eff"}.
Json TextJson(const std::string& text) {
  const std::string shown = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (Json::parse(shown).get<std::string>() == text) return text;
  return {{"hex", absl::BytesToHexString(text)}};
}

Json TextsJson(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(TextJson(text));
  return list;
}

// A threshold of "inf" compares as the largest number does, which JSON can hold.
double Finite(double x) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return std::clamp(x, -kMost, kMost);
}

Json LabelJson(const Recipe::Label& label) {
  Json json = {{"column", TextJson(label.column)}};
  if (label.threshold) json["threshold"] = Finite(*label.threshold);
  if (!label.positive.empty()) json["positive"] = TextsJson(label.positive);
  if (!label.negative.empty()) json["negative"] = TextsJson(label.negative);
  return json;
}

Json DenseJson(const Recipe::Dense& dense) {
  Json json = {{"column", TextJson(dense.column)},
               {"transform", WordOf(kTransformWords, dense.transform)}};
  if (dense.transform == DenseTransform::kStandardize || HasLogMean(dense)) {
    json["mean"] = dense.mean;
    json["deviation"] = dense.deviation;
  }
  json["missing"] = dense.missing;
  if (dense.low) json["low"] = *dense.low;
  if (dense.high) json["high"] = *dense.high;
  return json;
}

template <typename List, typename Convert>
Json ListJson(const List& list, const Convert& convert) {
  Json json = Json::array();
  for (const auto& one : list) json.push_back(convert(one));
  return json;
}

template <typename Source>
Json SourceJson(const Source& source) {
  Json json = {{"column", TextJson(source.column)}};
  if (source.bucket) json["bucket"] = true;
  if (source.separator) json["separator"] = TextJson(std::string(1, *source.separator));
  if (source.integer) json["integer"] = true;
  if (source.list) json["list"] = true;
  if (source.weights) json["weights"] = true;
  return json;
}

Json SlotJson(const Recipe::Slot& slot) {
  Json json = SourceJson(slot);
  if (!slot.shares.empty()) json["shares"] = TextJson(slot.shares);
  if (slot.key_weights) json["key_weights"] = true;
  if (slot.weight_mark != ':') json["weight_mark"] = std::string(1, slot.weight_mark);
  if (!slot.weight_column.empty()) json["weight_column"] = TextJson(slot.weight_column);
  if (!slot.cross.empty()) json["cross"] = ListJson(slot.cross, SourceJson<Recipe::Source>);
  return json;
}

Json NumbersJson(const Recipe::Numbers& numbers) {
  const NumberForm& form = numbers.form;
  Json json = {{"column", TextJson(numbers.column)}};
  if (form.decimal != '.') json["decimal"] = std::string(1, form.decimal);
  if (form.group != 0) json["group"] = std::string(1, form.group);
  if (!form.unit.empty()) json["unit"] = TextJson(form.unit);
  if (!form.none.empty()) json["none"] = TextsJson(form.none);
  return json;
}

}  // namespace

nlohmann::ordered_json MeaningJson(const Recipe& recipe) {
  const std::set<std::string> missing_values(recipe.missing_values.begin(),
                                             recipe.missing_values.end());
  Json json;
  json["labels"] = ListJson(recipe.labels, LabelJson);
  if (!recipe.weight.empty()) json["weight"] = TextJson(recipe.weight);
  json["dense"] = ListJson(recipe.dense, DenseJson);
  json["slots"] = ListJson(recipe.slots, SlotJson);
  if (!recipe.numbers.empty()) json["numbers"] = ListJson(recipe.numbers, NumbersJson);
  json["trim"] = recipe.trim;
  json["missing_values"] = TextsJson({missing_values.begin(), missing_values.end()});
  json["missing"] = WordOf(kStandInWords, recipe.missing);
  json["keys"] = WordOf(kKeyModeWords, recipe.keys);
  json["key_bits"] = recipe.key_bits;
  json["vocabulary"] = nullptr;
  if (recipe.vocabulary_xxh3) {
    json["vocabulary"] = {{"xxh3", HashText(*recipe.vocabulary_xxh3)},
                          {"rare", WordOf(kStandInWords, recipe.rare)}};
  }
  return json;
}

nlohmann::ordered_json HistoryJson(const Recipe::History& history) {
  Json json = {{"min_count", history.min_count}, {"extends", Json::array()}};
  for (const uint64_t hash : history.extends) json["extends"].push_back(HashText(hash));
  return json;
}

nlohmann::ordered_json LayoutJson(const Recipe::Layout& layout) {
  const TextFormatEntry& format = EntryOf(layout.format);
  Json json = {{"format", format.word}};
  if (format.has_features()) {
    json["single_slot"] = layout.single_slot;
    json["any_value"] = layout.any_value;
  } else {
    json["delimiter"] = TextJson(std::string(1, layout.delimiter));
    json["header"] = layout.header;
  }
  json["columns"] = TextsJson(layout.columns);
  return json;
}

}  // namespace cistern::data
