// Rows that are JSON objects, one by one: messages of a stream, rows of a request.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/recipe/json_members.h"
#include "worker/data/recipe/part_columns.h"
#include "worker/data/recipe/recipe.h"

namespace cistern::data {

// Reads objects whose members are the columns of a recipe, in any order and case (known_names.h),
// among others; lists and objects may be whole or their parts.
//
// Threads: one at a time.
class ObjectRow {
 public:
  // columns: those that are wanted.
  ObjectRow(const Recipe& recipe, std::vector<std::string> columns);

  // Sets the fields of the wanted columns, which are valid until the next call. A field without
  // data is that of a column that the object lacks; null is an empty one. kDataLoss: it is no
  // object, a member holds lists of lists, or a list has another length than in training.
  absl::Status Read(absl::string_view object, std::vector<absl::string_view>* fields);

  // Whether the last object had any of the columns.
  bool found_any() const { return found_any_; }

 private:
  bool IsKnown(const std::string& name) const {
    return places_.count(name) > 0 || whole_places_.count(name) > 0;
  }
  // Gives members their known names, if these differ in case only.
  void TakeOtherCases();

  const std::vector<std::string> columns_;
  RowParts parts_;
  const ListSeparators separators_;
  std::map<std::string, size_t> places_, whole_places_;  // of the columns; of those in parts_
  std::map<std::string, std::string> names_;             // all of them, by their lower case
  std::vector<JsonMember> members_;
  std::vector<absl::string_view> wholes_;
  bool found_any_ = false;
};

}  // namespace cistern::data
