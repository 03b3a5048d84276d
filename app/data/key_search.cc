#include "app/data/key_search.h"

#include "absl/strings/str_split.h"
#include "worker/data/recipe/row_encoder.h"
#include "worker/data/recipe/table_files.h"
#include "worker/data/recipe/text_samples.h"

namespace cistern::app {
namespace {

std::vector<absl::string_view> Texts(absl::string_view field, std::optional<char> separator) {
  if (!separator) return {field};
  return absl::StrSplit(field, *separator);
}

}  // namespace

KeySearch::KeySearch(const data::OwnedEncoder& encoder, const std::vector<Key>& keys)
    : encoder_(encoder) {
  for (const Key key : keys) wanted_[key] = true;
}

absl::Status KeySearch::Read(const std::vector<std::string>& tables, const JobCalls& calls) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> files, data::TableFiles(tables));
  // A member may be absent from all objects of a part.
  CISTERN_ASSIGN_OR_RETURN(const data::JsonColumns members,
                           data::FindJsonColumns(files, data::SeparatorsOf(encoder_.recipe())));
  for (const std::string& file : files) {
    CISTERN_RETURN_IF_ERROR(ReadFile(file, members, calls));
  }
  return absl::OkStatus();
}

absl::Status KeySearch::ReadFile(const std::string& path, const data::JsonColumns& members,
                                 const JobCalls& calls) {
  const data::Recipe& recipe = encoder_.recipe();
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<data::TextTable> table,
                           data::OpenRecipeTable(recipe, path, 0, {}, &members));
  table = data::WithPartitions(std::move(table), path, data::FeatureColumns(recipe));
  const absl::StatusOr<data::RowPlaces> places =
      data::FindPlaces(recipe, table->columns(), data::Labels::kOptional);
  if (!places.ok()) return AddContext(places.status(), path);
  for (data::TextRow row;;) {
    CISTERN_ASSIGN_OR_RETURN(const bool found, table->Next(&row));
    if (!found) return absl::OkStatus();
    for (size_t slot = 0; slot < recipe.slots.size(); ++slot) {
      CISTERN_RETURN_IF_ERROR(AddContext(Take(recipe.slots[slot], row, places->slots[slot]),
                                         absl::StrCat(path, ": line ", row.line)));
    }
    if (++rows_ % 65536 != 0) continue;
    if (calls.amount) calls.amount({"reading", "rows", rows_, 0});
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
  }
}

absl::Status KeySearch::Take(const data::Recipe::Slot& slot, const data::TextRow& row,
                             const std::vector<size_t>& places) {
  if (slot.cross.empty()) {
    for (const absl::string_view text : Texts(row.fields[places.front()], slot.separator)) {
      CISTERN_RETURN_IF_ERROR(TakeText(slot.column, std::string(text)));
    }
    return absl::OkStatus();
  }
  // The counts in double: the product of a row of very many values may not fit a size_t.
  double number = 1;
  for (size_t i = 0; i < places.size(); ++i) {
    number *= static_cast<double>(Texts(row.fields[places[i]], slot.cross[i].separator).size());
  }
  if (number > static_cast<double>(data::kMaxCombinations)) {
    return absl::OutOfRangeError(absl::StrCat("the cross ", slot.column, " has ", number,
                                              " combinations of values in this row; the limit is ",
                                              data::kMaxCombinations));
  }
  std::vector<std::vector<absl::string_view>> combinations = {{}};
  for (size_t i = 0; i < places.size(); ++i) {
    std::vector<std::vector<absl::string_view>> longer;
    for (const absl::string_view text : Texts(row.fields[places[i]], slot.cross[i].separator)) {
      for (const std::vector<absl::string_view>& begun : combinations) {
        longer.push_back(begun);
        longer.back().push_back(text);
      }
    }
    combinations = std::move(longer);
  }
  for (const std::vector<absl::string_view>& texts : combinations) {
    CISTERN_RETURN_IF_ERROR(TakeText(slot.column, data::CrossText(texts)));
  }
  return absl::OkStatus();
}

absl::Status KeySearch::TakeText(const std::string& column, const std::string& text) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<Key> keys, encoder_.encoder().KeysOf(column, text));
  for (const Key key : keys) {
    if (wanted_.count(key) > 0) ++found_[FoundText{column, text, key}];
  }
  return absl::OkStatus();
}

std::vector<FoundText> KeySearch::Results() const {
  std::vector<FoundText> all;
  for (const auto& [found, rows] : found_) {
    all.push_back(found);
    all.back().rows = rows;
  }
  return all;
}

}  // namespace cistern::app
