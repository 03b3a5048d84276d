#include "worker/data/recipe/recipe.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "common/base/hash_text.h"
#include "worker/data/recipe/recipe_json.h"

namespace cistern::data {
namespace {

using Json = nlohmann::ordered_json;

// What a person reads of a value: a text without its quotes.
std::string Shown(const Json& json) {
  constexpr size_t kMost = 80;
  std::string text = json.is_string() ? json.get<std::string>()
                                      : json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMost) text = absl::StrCat(text.substr(0, kMost), "...");
  return text;
}

// "dense[1]", with the column that it is about.
std::string ElementPath(const std::string& list, size_t i, const Json& element) {
  const std::string path = absl::StrCat(list, "[", i, "]");
  if (!element.is_object() || !element.contains("column")) return path;
  return absl::StrCat(path, " (", Shown(element["column"]), ")");
}

bool HasHistory(const Recipe& recipe) {
  return recipe.history.min_count > 0 || !recipe.history.extends.empty();
}

// Older programs read recipes without what came later.
uint64_t FormatOfMeaning(const Recipe& recipe) {
  const auto typed = [](const auto& source) {
    return source.integer || source.list || source.weights;
  };
  bool crosses = false;
  bool later = HasHistory(recipe) || !recipe.numbers.empty();
  for (const Recipe::Slot& slot : recipe.slots) {
    crosses = crosses || !slot.cross.empty();
    later = later || typed(slot) || !slot.shares.empty() ||
            std::any_of(slot.cross.begin(), slot.cross.end(), typed);
  }
  for (const Recipe::Label& label : recipe.labels) later = later || !label.negative.empty();
  for (const Recipe::Dense& dense : recipe.dense) later = later || dense.low || dense.high;
  if (std::any_of(recipe.dense.begin(), recipe.dense.end(), HasLogMean)) return kRecipeFormat;
  if (HasKeyWeights(recipe)) return kRecipeFormatWithoutLogMeans;
  if (!recipe.weight.empty()) return kRecipeFormatWithoutKeyWeights;
  if (later) return kRecipeFormatWithoutWeights;
  return crosses ? kRecipeFormatOfCrosses : kRecipeFormatWithoutCrosses;
}

uint64_t FormatOf(const Recipe& recipe) {
  return std::max(EntryOf(recipe.layout.format).recipe_format, FormatOfMeaning(recipe));
}

std::string Difference(const std::string& path, const Json& mine, const Json& other);

std::string MemberDifference(const std::string& path, const Json& mine, const Json& other) {
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const auto& [name, value] : mine.items()) {
    if (!other.contains(name)) return absl::StrCat(prefix, name, " is ", Shown(value), ", not set");
    const std::string found = Difference(prefix + name, value, other[name]);
    if (!found.empty()) return found;
  }
  for (const auto& [name, value] : other.items()) {
    if (!mine.contains(name)) return absl::StrCat(prefix, name, " is not set, not ", Shown(value));
  }
  return "";
}

std::string Difference(const std::string& path, const Json& mine, const Json& other) {
  if (mine == other) return "";
  if (mine.is_object() && other.is_object()) return MemberDifference(path, mine, other);
  if (!mine.is_array() || !other.is_array()) {
    return absl::StrCat(path, " is ", Shown(mine), ", not ", Shown(other));
  }
  for (size_t i = 0; i < std::min(mine.size(), other.size()); ++i) {
    // A column in another place comes first; the path would name only one of the two.
    const bool named = mine[i].is_object() && other[i].is_object();
    if (named && mine[i].value("column", Json()) != other[i].value("column", Json())) {
      return absl::StrCat(path, "[", i, "].column is ", Shown(mine[i]["column"]), ", not ",
                          Shown(other[i]["column"]));
    }
    const std::string found = Difference(ElementPath(path, i, mine[i]), mine[i], other[i]);
    if (!found.empty()) return found;
  }
  return absl::StrCat(path, " has ", mine.size(), " elements, not ", other.size());
}

}  // namespace

const NumberForm* NumberFormOf(const Recipe& recipe, const std::string& column) {
  for (const Recipe::Numbers& numbers : recipe.numbers) {
    if (numbers.column == column) return &numbers.form;
  }
  return nullptr;
}

uint64_t HashOf(const Recipe& recipe) {
  return HashBytes(MeaningJson(recipe).dump());
}

std::string HashTextOf(const Recipe& recipe) {
  return HashText(HashOf(recipe));
}

std::string FormatRecipe(const Recipe& recipe) {
  Json json;
  json["format"] = FormatOf(recipe);
  json["layout"] = LayoutJson(recipe.layout);
  json["meaning"] = MeaningJson(recipe);
  if (HasHistory(recipe)) json["history"] = HistoryJson(recipe.history);
  json["xxh3"] = HashTextOf(recipe);
  return json.dump(2) + "\n";
}

std::string RecipeDifference(const Recipe& mine, const Recipe& other) {
  return Difference("", MeaningJson(mine), MeaningJson(other));
}

bool Extends(const Recipe& recipe, const Recipe& other) {
  const uint64_t hash = HashOf(other);
  const std::vector<uint64_t>& extends = recipe.history.extends;
  return HashOf(recipe) == hash || std::count(extends.begin(), extends.end(), hash) > 0;
}

bool ReadSameRows(const Recipe& a, const Recipe& b) {
  return HashOf(a) == HashOf(b) && a.layout.format == b.layout.format &&
         a.layout.delimiter == b.layout.delimiter && FeatureColumns(a) == FeatureColumns(b);
}

bool HasLogMean(const Recipe::Dense& dense) {
  return dense.transform == DenseTransform::kLog1p && (dense.mean != 0 || dense.deviation != 1);
}

bool HasKeyWeights(const Recipe& recipe) {
  return std::any_of(recipe.slots.begin(), recipe.slots.end(),
                     [](const Recipe::Slot& slot) { return slot.key_weights; });
}

std::string CrossName(const std::vector<Recipe::Source>& sources) {
  return absl::StrJoin(sources, "_x_", [](std::string* out, const Recipe::Source& source) {
    absl::StrAppend(out, source.column);
  });
}

std::string CrossText(const std::vector<absl::string_view>& values) {
  std::string text;
  for (const absl::string_view value : values) absl::StrAppend(&text, value.size(), ":", value);
  return text;
}

std::vector<std::string> FeatureColumns(const Recipe& recipe) {
  std::set<std::string> features;
  for (const Recipe::Dense& dense : recipe.dense) features.insert(dense.column);
  for (const Recipe::Slot& slot : recipe.slots) {
    if (slot.cross.empty()) features.insert(slot.column);
    if (!slot.weight_column.empty()) features.insert(slot.weight_column);
    for (const Recipe::Source& source : slot.cross) features.insert(source.column);
  }
  std::vector<std::string> columns;
  for (const std::string& column : recipe.layout.columns) {
    if (features.erase(column) > 0) columns.push_back(column);
  }
  columns.insert(columns.end(), features.begin(), features.end());  // none in a valid recipe
  return columns;
}

char DelimiterOf(const Recipe::Layout& layout) {
  const TextFormatEntry& format = EntryOf(layout.format);
  return format.has_features() ? format.delimiter : layout.delimiter;
}

std::vector<std::string> ReadColumns(const Recipe& recipe) {
  std::vector<std::string> columns = FeatureColumns(recipe);
  for (const Recipe::Label& label : recipe.labels) columns.push_back(label.column);
  if (!recipe.weight.empty()) columns.push_back(recipe.weight);
  return columns;
}

std::map<std::string, char> SeparatorsOf(const Recipe& recipe) {
  std::map<std::string, char> separators;
  for (const Recipe::Slot& slot : recipe.slots) {
    if (slot.separator) separators[slot.column] = *slot.separator;
    for (const Recipe::Source& source : slot.cross) {
      if (source.separator) separators[source.column] = *source.separator;
    }
  }
  return separators;
}

}  // namespace cistern::data
