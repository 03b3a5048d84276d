// What RowEncoder does by the names of columns: FindPlaces and KeysOf.
#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/nearest_name.h"
#include "common/base/shown_text.h"
#include "worker/data/recipe/part_columns.h"
#include "worker/data/recipe/row_encoder.h"

namespace cistern::data {
namespace {

// The names as a message shows them: the first ones, without control characters.
std::string Shown(const std::vector<std::string>& columns) {
  constexpr size_t kMost = 60, kMaxShownBytes = 40;
  std::vector<std::string> shown;
  for (const std::string& column : columns) {
    if (shown.size() == kMost) {
      shown.push_back("...");
      break;
    }
    shown.push_back(ShownText(column, kMaxShownBytes));
  }
  return absl::StrJoin(shown, ", ");
}

// Names the column that is probably meant, which is none that the training data had; "": none is.
std::string AlmostOf(const std::string& name, const std::vector<std::string>& columns,
                     const std::vector<std::string>& known) {
  std::vector<std::string> others;
  for (const std::string& column : columns) {
    if (std::count(known.begin(), known.end(), column) == 0) others.push_back(column);
  }
  const std::string nearest = NearestName(name, others);
  if (nearest.empty()) return "";
  if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(nearest), name)) {
    return absl::StrCat(" (did you mean '", ShownText(nearest), "'?)");
  }
  return absl::StrCat(", but several in another case, such as '", ShownText(nearest), "'");
}

// The way back from CrossText.
absl::StatusOr<std::vector<absl::string_view>> CrossedFields(const Recipe::Slot& slot,
                                                             absl::string_view text) {
  std::vector<absl::string_view> fields;
  bool whole = true;
  for (absl::string_view rest = text; whole && !rest.empty();) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    size_t size = 0;
    whole = absl::SimpleAtoi(rest.substr(0, colon), &size) && size < rest.size() - colon;
    if (!whole) break;
    fields.push_back(rest.substr(colon + 1, size));
    rest.remove_prefix(colon + 1 + size);
  }
  if (whole && fields.size() == slot.cross.size()) return fields;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", ShownText(text, 40), "' is not a value of the cross '", slot.column,
      "': write the length of each of its ", slot.cross.size(),
      " texts, a colon and the text, such as ", CrossText({"7", "33"}), " for 7 and 33"));
}

}  // namespace

absl::StatusOr<RowPlaces> FindPlaces(const Recipe& recipe, const std::vector<std::string>& columns,
                                     Labels labels) {
  std::map<absl::string_view, size_t> found;
  for (size_t i = 0; i < columns.size(); ++i) found.emplace(columns[i], i);
  // `cistern init` takes a header for one with spaces around its names.
  for (size_t i = 0; i < columns.size(); ++i) {
    found.emplace(absl::StripAsciiWhitespace(columns[i]), i);
  }
  absl::Status missing;
  const auto place_of = [&](const std::string& column, const char* role) {
    const auto place = found.find(column);
    if (place != found.end()) return place->second;
    missing.Update(absl::InvalidArgumentError(absl::StrCat(
        "there is no column '", ShownText(column), "', which the recipe reads (", role, ")",
        AlmostOf(column, columns, recipe.layout.columns), "; the columns are ", Shown(columns))));
    return RowPlaces::kAbsent;
  };
  RowPlaces places;
  for (const Recipe::Label& label : recipe.labels) {
    const bool absent = labels == Labels::kOptional && found.count(label.column) == 0;
    places.labels.push_back(absent ? RowPlaces::kAbsent : place_of(label.column, "a label"));
  }
  if (!recipe.weight.empty() && (labels == Labels::kNeeded || found.count(recipe.weight) > 0)) {
    places.weight = place_of(recipe.weight, "the weight");
  }
  for (const Recipe::Dense& dense : recipe.dense) {
    places.dense.push_back(place_of(dense.column, "a dense feature"));
  }
  for (const Recipe::Slot& slot : recipe.slots) {
    std::vector<size_t>& read = places.slots.emplace_back();
    if (slot.cross.empty()) read.push_back(place_of(slot.column, "a slot"));
    if (!slot.weight_column.empty()) {
      read.push_back(place_of(slot.weight_column, "the weights of keys"));
    }
    for (const Recipe::Source& source : slot.cross) {
      read.push_back(place_of(source.column, "a cross"));
    }
  }
  CISTERN_RETURN_IF_ERROR(missing);
  return places;
}

absl::Status WithColumnsFix(const absl::Status& error, const Recipe& recipe,
                            const std::vector<std::string>& columns, Labels labels) {
  const auto are_there = [&](const std::vector<std::string>& names) {
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return std::any_of(columns.begin(), columns.end(), [&](const std::string& column) {
        return absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(column), name);
      });
    });
  };
  const std::vector<std::string> features = FeatureColumns(recipe);
  std::vector<std::string> absent, others;
  for (const std::string& name : features) {
    if (!are_there({name})) absent.push_back(name);
  }
  for (const std::string& name : ReadColumns(recipe)) {
    if (std::count(features.begin(), features.end(), name) == 0) others.push_back(name);
  }
  const bool lacks_label = labels == Labels::kNeeded && !are_there(others);
  if (absent.empty() || absent.size() == features.size() || lacks_label) {
    return WithMessage(error, absl::StrCat(error.message(), ": rename or add it"));
  }
  return WithOptions(
      WithMessage(error,
                  absl::StrCat(error.message(), ": rename it, or let ",
                               absent.size() == 1 ? "it" : "all that are missing", " be empty")),
      {absl::StrCat("add_column=", absl::StrJoin(WholesOf(absent, recipe.layout.columns), ","))});
}

absl::StatusOr<std::vector<Key>> RowEncoder::KeysOf(const std::string& column,
                                                    absl::string_view field) const {
  std::vector<std::string> columns;
  for (size_t s = 0; s < slots_.size(); ++s) {
    columns.push_back(recipe_.slots[s].column);
    if (columns.back() != column) continue;
    SparseColumn read;
    EncoderWork work = NewWork();
    std::vector<absl::string_view> fields = {field};
    if (!recipe_.slots[s].cross.empty()) {
      CISTERN_ASSIGN_OR_RETURN(fields, CrossedFields(recipe_.slots[s], field));
    }
    // The keys of values without their weights: those of a column beside it are not given here.
    CISTERN_RETURN_IF_ERROR(AddContext(AppendSlot(fields, s, /*weighted=*/false, &work, &read),
                                       absl::StrCat("column '", column, "'")));
    return std::move(read.keys);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no slot reads a column '", column, "'; the slots read ", Shown(columns)));
}

}  // namespace cistern::data
