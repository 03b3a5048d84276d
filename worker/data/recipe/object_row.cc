#include "worker/data/recipe/object_row.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace cistern::data {

ObjectRow::ObjectRow(const Recipe& recipe, std::vector<std::string> columns)
    : columns_(std::move(columns)),
      parts_(WholesOf(columns_, recipe.layout.columns), columns_, recipe.layout.columns),
      separators_(SeparatorsOf(recipe)) {
  for (size_t i = 0; i < columns_.size(); ++i) places_[columns_[i]] = i;
  for (size_t i = 0; i < parts_.own().size(); ++i) whole_places_[parts_.own()[i]] = i;
  for (const auto* const places : {&places_, &whole_places_}) {
    for (const auto& [name, place] : *places) names_.emplace(absl::AsciiStrToLower(name), name);
  }
}

void ObjectRow::TakeOtherCases() {
  std::set<std::string> there;
  for (const JsonMember& member : members_) {
    if (IsKnown(member.name)) there.insert(member.name);
  }
  for (JsonMember& member : members_) {
    if (IsKnown(member.name)) continue;
    const auto known = names_.find(absl::AsciiStrToLower(member.name));
    if (known != names_.end() && there.insert(known->second).second) member.name = known->second;
  }
}

absl::Status ObjectRow::Read(absl::string_view object, std::vector<absl::string_view>* fields) {
  CISTERN_RETURN_IF_ERROR(ReadMembers(object, separators_, &members_));
  TakeOtherCases();
  fields->assign(columns_.size(), absl::string_view());
  wholes_.assign(parts_.own().size(), absl::string_view());
  found_any_ = false;
  for (const JsonMember& member : members_) {
    const auto place = places_.find(member.name);
    const auto whole = whole_places_.find(member.name);
    found_any_ = found_any_ || IsKnown(member.name);
    if (whole != whole_places_.end()) wholes_[whole->second] = member.text;
    if (place == places_.end()) continue;
    if (member.is_nested_list) {
      return absl::DataLossError(absl::StrCat("'", member.name, "' is a list of objects or lists"));
    }
    (*fields)[place->second] = member.text;
  }
  return WithCode(parts_.Fill(wholes_, fields), absl::StatusCode::kDataLoss);
}

}  // namespace cistern::data
