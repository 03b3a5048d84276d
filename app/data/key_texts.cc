#include "app/data/key_texts.h"

#include <cmath>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "app/data/key_search.h"
#include "app/data/missing_file.h"
#include "worker/data/recipe/recipe_folder.h"
#include "worker/data/recipe/row_encoder.h"
#include "worker/data/recipe/table_files.h"

namespace cistern::app {
namespace {

// A text that no table has.
constexpr char kNoValue[] = "\x01 cistern: no value";

// "1:72:33" (CrossText) gives "7, 33".
std::string CrossShown(const std::string& text) {
  std::vector<std::string> values;
  for (absl::string_view rest = text; !rest.empty();) {
    const size_t colon = rest.find(':');
    size_t bytes = 0;
    if (!absl::SimpleAtoi(rest.substr(0, colon), &bytes) || bytes > rest.size() - colon - 1) {
      return text;
    }
    values.emplace_back(rest.substr(colon + 1, bytes));
    rest.remove_prefix(colon + 1 + bytes);
  }
  return absl::StrJoin(values, ", ");
}

class KeyNames {
 public:
  KeyNames(const data::OwnedEncoder& encoder, std::map<std::string, std::set<Key>> wanted)
      : encoder_(encoder), wanted_(std::move(wanted)) {}

  // What the recipe tells by itself.
  void AddOfRecipe(const data::Recipe::Slot& slot) {
    if (slot.bucket) AddBuckets(slot.column);
    if (slot.cross.empty()) Add(slot.column, "", "(missing)");
    if (!slot.bucket && slot.cross.empty() && encoder_.recipe().vocabulary_xxh3) {
      Add(slot.column, kNoValue, "(rare values)");
    }
  }

  // The most frequent text of each key; "and 3 others" share it.
  void AddOfTables(const KeySearch& search) {
    std::map<std::pair<std::string, Key>, std::vector<FoundText>> by_key;
    for (const FoundText& found : search.Results()) {
      by_key[{found.column, found.key}].push_back(found);
    }
    for (const auto& [key, found] : by_key) {
      if (texts_.count(key) > 0 || wanted_[key.first].count(key.second) == 0) continue;
      const auto most =
          std::max_element(found.begin(), found.end(),
                           [](const FoundText& a, const FoundText& b) { return a.rows < b.rows; });
      const std::string others =
          found.size() > 1 ? absl::StrCat(" and ", found.size() - 1, " others") : "";
      const bool is_cross = crosses_.count(key.first) > 0;
      texts_[key] = absl::StrCat(is_cross ? CrossShown(most->text) : most->text, others);
    }
  }

  void AddCross(const std::string& name) { crosses_.insert(name); }
  report::KeyTexts Take() { return std::move(texts_); }

 private:
  void Add(const std::string& column, const std::string& field, const std::string& shown) {
    const absl::StatusOr<std::vector<Key>> keys = encoder_.encoder().KeysOf(column, field);
    if (!keys.ok() || keys->size() != 1 || wanted_[column].count(keys->front()) == 0) return;
    std::string& text = texts_[{column, keys->front()}];
    // Buckets that the vocabulary does not keep share a key.
    text = text.empty() || text == shown ? shown : "(rare values)";
  }

  // Of row_encoder.cc: integers up to 2, then floor(ln(x)^2), up to 1e15.
  void AddBuckets(const std::string& column) {
    constexpr int kLeast = -1000, kMostOfAll = 1192;
    for (int number = kLeast; number <= 2; ++number) {
      Add(column, absl::StrCat(number), absl::StrCat(number));
    }
    for (int bucket = 0; bucket <= kMostOfAll; ++bucket) {
      const double begin = std::max(2.0, std::exp(std::sqrt(bucket)));
      const double end = std::exp(std::sqrt(bucket + 1));
      if (end <= 2) continue;
      Add(column, absl::StrFormat("%.17g", std::sqrt(begin * end)),
          absl::StrFormat("%.4g to %.4g", begin, end));
    }
  }

  const data::OwnedEncoder& encoder_;
  std::map<std::string, std::set<Key>> wanted_;  // by column
  std::set<std::string> crosses_;
  report::KeyTexts texts_;
};

}  // namespace

absl::StatusOr<report::KeyTexts> TextsOfKeys(const report::RunView& run,
                                             const std::vector<std::string>& tables,
                                             const JobCalls& calls) {
  if (!run.study) return report::KeyTexts();
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::optional<data::FoundRecipe> found,
                           data::FindRecipe(files, run.folder));
  if (!found) return report::KeyTexts();
  const auto encoder = data::OwnedEncoder::Open(found->recipe, found->vocabulary_path());
  if (!encoder.ok()) return WithKind(encoder.status(), ErrorKind::kBadCheckpoint);
  const std::vector<data::Recipe::Slot>& slots = (*encoder)->recipe().slots;
  std::map<std::string, std::set<Key>> wanted;
  std::vector<Key> keys;
  for (size_t i = 0; i < run.study->slots.size() && i < slots.size(); ++i) {
    for (const report::ValueCalibration& value : run.study->slots[i].worst) {
      wanted[slots[i].column].insert(value.key);
      keys.push_back(value.key);
    }
  }
  KeyNames names(**encoder, std::move(wanted));
  for (const data::Recipe::Slot& slot : slots) {
    names.AddOfRecipe(slot);
    if (!slot.cross.empty()) names.AddCross(slot.column);
  }
  if (tables.empty()) return names.Take();
  KeySearch search(**encoder, keys);
  CISTERN_RETURN_IF_ERROR(MissingIsWrong(search.Read(tables, calls)));
  names.AddOfTables(search);
  return names.Take();
}

}  // namespace cistern::app
