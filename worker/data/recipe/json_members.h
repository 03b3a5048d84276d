// The members of a JSON object as texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

struct JsonMember {
  std::string name;  // of a member of an object inside: "user.id"
  // A text without its quotes, a number as it is written, 1 or 0 for true and false, empty for
  // null; the values of an array, with the separator of the member between them. An array of
  // objects is an array for each of their members: "seen.id".
  std::string text;
  bool is_list = false;
  bool is_nested_list = false;  // has arrays in it: its text is not complete
};

// Replaces `members` by those of `object`, in order. kDataLoss, without a place: it is no object,
// or nests too deeply, or a value of an array contains the separator.
absl::Status ReadMembers(absl::string_view object, const ListSeparators& separators,
                         std::vector<JsonMember>* members);

// A hash of its names and brackets, without its values: objects with the same one have the same
// members. Any text has one, and it is computed far faster than members are read.
uint64_t ShapeOf(absl::string_view object);

}  // namespace cistern::data
