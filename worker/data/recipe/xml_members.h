// An element of XML as an object: what some programs put into one column.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/recipe/json_members.h"

namespace cistern::data {

// Replaces `members` by the attributes, and the elements without elements inside, of the one
// element that `text` is: <c><user>u3</user><price>1.5</price></c>, <c user="u3" price="1.5"/>.
// False: it is none, has text beside elements, or uses a name twice, as lists do.
bool ReadXmlMembers(absl::string_view text, std::vector<JsonMember>* members);

}  // namespace cistern::data
