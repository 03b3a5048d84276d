// ParseRecipe of recipe.h.
#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "common/base/json_depth.h"
#include "worker/data/recipe/recipe_json.h"

namespace cistern::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxElements = size_t{1} << 20;  // of a list

// Reads an object. Keeps the first error. Every member that is there must be asked for.
//
// Threads: one at a time.
class ObjectReader {
 public:
  ObjectReader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) Fail("", "an object");
  }

  bool Has(const char* name) {
    seen_.insert(name);
    return json_.is_object() && json_.contains(name);
  }
  bool Flag(const char* name) {
    const Json* const value = Find(name);
    if (value == nullptr || !value->is_boolean()) return Fail(name, "true or false"), false;
    return value->get<bool>();
  }
  uint64_t Count(const char* name) {
    const Json* const value = Find(name);
    if (value == nullptr || !value->is_number_unsigned()) return Fail(name, "a whole number"), 0;
    return value->get<uint64_t>();
  }
  double Number(const char* name) {
    const Json* const value = Find(name);
    if (value == nullptr || !value->is_number()) return Fail(name, "a number"), 0;
    return value->get<double>();
  }
  std::string Text(const char* name) {
    const Json* const value = Find(name);
    std::string text;
    if (value == nullptr || !TextIn(*value, &text)) Fail(name, "a string");
    return text;
  }
  char Character(const char* name) {
    const std::string text = Text(name);
    if (text.size() != 1) return Fail(name, "one character"), ' ';
    return text[0];
  }
  uint64_t Hash(const char* name) {
    const std::string digits = Text(name);
    uint64_t hash = 0;
    if (digits.size() != 16 || !absl::SimpleHexAtoi(digits, &hash)) Fail(name, "16 hex digits");
    return hash;
  }
  template <typename Words>
  auto Word(const char* name, const Words& words) {
    const std::string text = Text(name);
    for (const auto& [value, word] : words) {
      if (text == word) return value;
    }
    Fail(name, "a word of this format");
    return std::begin(words)->first;
  }
  std::vector<std::string> Texts(const char* name) {
    std::vector<std::string> texts;
    ForEach(name, [&](const Json& one, const std::string&) {
      if (!TextIn(one, &texts.emplace_back())) Fail(name, "a list of strings");
    });
    return texts;
  }
  template <typename Visit>
  void ForEach(const char* name, const Visit& visit) {
    const Json* const value = Find(name);
    if (value == nullptr || !value->is_array() || value->size() > kMaxElements) {
      return Fail(name, "a list");
    }
    for (size_t i = 0; i < value->size(); ++i) {
      visit((*value)[i], absl::StrCat(path_, name, "[", i, "]."));
    }
  }
  template <typename Visit>
  void Object(const char* name, const Visit& visit) {
    const Json* const value = Find(name);
    if (value == nullptr) return Fail(name, "an object");
    Below(*value, absl::StrCat(path_, name, "."), visit);
  }
  // Lets `visit` read an object inside this one.
  template <typename Visit>
  void Below(const Json& json, const std::string& path, const Visit& visit) {
    ObjectReader reader(json, path);
    visit(reader);
    status_.Update(reader.Finish());
  }
  bool IsNull(const char* name) {
    const Json* const value = Find(name);
    return value != nullptr && value->is_null();
  }
  void Fail(const char* name, const char* type) {
    status_.Update(
        absl::DataLossError(absl::StrCat("\"", path_, name, "\" is missing or is not ", type)));
  }
  // The first error; an unknown member is one.
  absl::Status Finish() {
    if (!json_.is_object()) return status_;
    for (const auto& [name, value] : json_.items()) {
      if (seen_.count(name) == 0) {
        status_.Update(absl::DataLossError(absl::StrCat("\"", path_, name, "\" is unknown")));
      }
    }
    return status_;
  }

 private:
  const Json* Find(const char* name) { return Has(name) ? &json_.at(name) : nullptr; }
  static bool TextIn(const Json& json, std::string* text) {
    if (json.is_string()) return json.get_to(*text), true;
    if (!json.is_object() || json.size() != 1 || !json.contains("hex") ||
        !json["hex"].is_string()) {
      return false;
    }
    const std::string digits = json["hex"].get<std::string>();
    const bool is_hex =
        digits.size() % 2 == 0 && digits.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (is_hex) *text = absl::HexStringToBytes(digits);
    return is_hex;
  }

  const Json& json_;
  const std::string path_;
  std::set<std::string> seen_;
  absl::Status status_;
};

void ReadLayout(ObjectReader& reader, Recipe::Layout* layout) {
  std::vector<std::pair<TextFormat, const char*>> words;
  for (const TextFormatEntry& entry : TextFormats()) words.emplace_back(entry.format, entry.word);
  layout->format = reader.Word("format", words);
  if (EntryOf(layout->format).has_features()) {
    layout->single_slot = reader.Flag("single_slot");
    layout->any_value = reader.Flag("any_value");
  } else {
    layout->delimiter = reader.Character("delimiter");
    layout->header = reader.Flag("header");
  }
  layout->columns = reader.Texts("columns");
}

void ReadLabel(ObjectReader& reader, Recipe::Label* label) {
  label->column = reader.Text("column");
  if (reader.Has("threshold")) label->threshold = reader.Number("threshold");
  if (reader.Has("positive")) label->positive = reader.Texts("positive");
  if (!reader.Has("negative")) return;
  label->negative = reader.Texts("negative");
  if (label->positive.empty() || label->negative.empty()) {
    reader.Fail("negative", "a list of texts beside \"positive\"");
  }
}

void ReadDense(ObjectReader& reader, Recipe::Dense* dense) {
  dense->column = reader.Text("column");
  dense->transform = reader.Word("transform", kTransformWords);
  if (dense->transform == DenseTransform::kStandardize ||
      (dense->transform == DenseTransform::kLog1p && reader.Has("mean"))) {
    dense->mean = reader.Number("mean");
    dense->deviation = reader.Number("deviation");
    if (!(dense->deviation > 0)) reader.Fail("deviation", "a number above 0");
  }
  dense->missing = reader.Number("missing");
  if (reader.Has("low")) dense->low = reader.Number("low");
  if (reader.Has("high")) dense->high = reader.Number("high");
  if (dense->low && dense->high && *dense->low > *dense->high) {
    reader.Fail("low", "a number of at most \"high\"");
  }
}

// Reads a list of objects.
template <typename T, typename Read>
void ReadList(ObjectReader& reader, const char* name, std::vector<T>* list, const Read& read) {
  reader.ForEach(name, [&](const Json& one, const std::string& path) {
    reader.Below(one, path, [&](ObjectReader& below) { read(below, &list->emplace_back()); });
  });
}

template <typename Source>
void ReadSource(ObjectReader& reader, Source* source) {
  source->column = reader.Text("column");
  if (reader.Has("bucket")) source->bucket = reader.Flag("bucket");
  if (reader.Has("separator")) source->separator = reader.Character("separator");
  if (reader.Has("integer")) source->integer = reader.Flag("integer");
  if (reader.Has("list")) source->list = reader.Flag("list");
  if (reader.Has("weights")) source->weights = reader.Flag("weights");
}

void ReadSlot(ObjectReader& reader, Recipe::Slot* slot) {
  ReadSource(reader, slot);
  if (reader.Has("shares")) slot->shares = reader.Text("shares");
  if (reader.Has("key_weights")) slot->key_weights = reader.Flag("key_weights");
  if (reader.Has("weight_column")) slot->weight_column = reader.Text("weight_column");
  if (reader.Has("weight_mark")) slot->weight_mark = reader.Character("weight_mark");
  const bool marked = slot->weight_mark != ':';
  if (marked && (!absl::StrContains("=(", slot->weight_mark) || !slot->weights)) {
    reader.Fail("weight_mark", "= or (, beside weights");
  }
  const bool paired = !slot->weight_column.empty();
  if (slot->key_weights ? slot->weights == paired || !slot->separator : paired) {
    reader.Fail("key_weights", "true, beside a separator and either weights or a weight_column");
  }
  if (!reader.Has("cross")) return;
  ReadList(reader, "cross", &slot->cross, ReadSource<Recipe::Source>);
  const bool alone = !slot->bucket && !slot->separator && !slot->integer && !slot->list &&
                     !slot->weights && slot->shares.empty() && !slot->key_weights &&
                     slot->column == CrossName(slot->cross);
  if (slot->cross.size() < 2 || slot->cross.size() > kMaxCrossed || !alone) {
    reader.Fail("cross",
                "a list of 2 to 8 columns, whose names joined by _x_ are the slot's column");
  }
}

void ReadNumbers(ObjectReader& reader, Recipe::Numbers* numbers) {
  constexpr absl::string_view kGroups = ",.'_ ";
  NumberForm& form = numbers->form;
  numbers->column = reader.Text("column");
  if (reader.Has("decimal")) form.decimal = reader.Character("decimal");
  if (form.decimal != '.' && form.decimal != ',') reader.Fail("decimal", "a point or a comma");
  if (reader.Has("group")) form.group = reader.Character("group");
  const bool known = form.group == 0 || kGroups.find(form.group) != absl::string_view::npos;
  if (!known || form.group == form.decimal) reader.Fail("group", "a separator of thousands");
  if (reader.Has("unit")) form.unit = reader.Text("unit");
  if (!reader.Has("none")) return;
  form.none = reader.Texts("none");
  if (!std::is_sorted(form.none.begin(), form.none.end())) reader.Fail("none", "sorted");
}

void ReadMeaning(ObjectReader& reader, Recipe* recipe) {
  ReadList(reader, "labels", &recipe->labels, ReadLabel);
  if (reader.Has("weight")) {
    recipe->weight = reader.Text("weight");
    if (recipe->weight.empty()) reader.Fail("weight", "the name of a column");
  }
  ReadList(reader, "dense", &recipe->dense, ReadDense);
  ReadList(reader, "slots", &recipe->slots, ReadSlot);
  if (reader.Has("numbers")) ReadList(reader, "numbers", &recipe->numbers, ReadNumbers);
  recipe->trim = reader.Flag("trim");
  recipe->missing_values = reader.Texts("missing_values");
  recipe->missing = reader.Word("missing", kStandInWords);
  recipe->keys = reader.Word("keys", kKeyModeWords);
  const uint64_t bits = reader.Count("key_bits");
  if (bits != 32 && bits != 64) reader.Fail("key_bits", "32 or 64");
  recipe->key_bits = bits == 32 ? 32 : 64;
  for (const Recipe::Slot& slot : recipe->slots) {
    if (recipe->keys == KeyMode::kHash) continue;
    if (!slot.cross.empty()) reader.Fail("keys", "hash, because a slot is a cross");
    if (!slot.shares.empty()) reader.Fail("keys", "hash, because slots share keys");
  }
  if (reader.IsNull("vocabulary")) return;
  reader.Object("vocabulary", [&](ObjectReader& below) {
    recipe->vocabulary_xxh3 = below.Hash("xxh3");
    recipe->rare = below.Word("rare", kStandInWords);
  });
}

void ReadHistory(ObjectReader& reader, Recipe::History* history) {
  history->min_count = reader.Count("min_count");
  for (const std::string& digits : reader.Texts("extends")) {
    uint64_t& hash = history->extends.emplace_back();
    if (digits.size() != 16 || !absl::SimpleHexAtoi(digits, &hash)) {
      reader.Fail("extends", "a list of 16 hex digits each");
    }
  }
}

}  // namespace

absl::StatusOr<Recipe> ParseRecipe(const std::string& text) {
  if (JsonDepth(text) > kMaxJsonDepth) return absl::DataLossError("not a recipe");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::DataLossError("not a recipe: it is not a JSON object");
  ObjectReader reader(json, "");
  const uint64_t format = reader.Count("format");
  if (format > kRecipeFormat) {
    return absl::DataLossError(absl::StrCat("its format ", format,
                                            " is newer than this program: use the version of "
                                            "cistern that wrote it"));
  }
  Recipe recipe;
  reader.Object("layout", [&](ObjectReader& below) { ReadLayout(below, &recipe.layout); });
  reader.Object("meaning", [&](ObjectReader& below) { ReadMeaning(below, &recipe); });
  if (reader.Has("history")) {
    reader.Object("history", [&](ObjectReader& below) { ReadHistory(below, &recipe.history); });
  }
  const uint64_t hash = reader.Hash("xxh3");
  CISTERN_RETURN_IF_ERROR(reader.Finish());
  if (hash != HashOf(recipe)) {
    return absl::DataLossError(
        "it was changed after it was written (its hash differs); convert the data again instead");
  }
  return recipe;
}

}  // namespace cistern::data
