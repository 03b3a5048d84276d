// Objects in the fields of a text file: what log writers and data frames put into one column.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "worker/data/recipe/json_members.h"

namespace cistern::data {

// Replaces `members` by those of the object that `field` holds: JSON ({"device": "d3"}), the same
// as Python prints it ({'device': 'd3', 'new': True}), JSON as a string of JSON or with the escapes
// of URLs, an element of XML (xml_members.h), what Python and the JVM print of an object
// (Context(device='d3', p=1.5), {device=d3, p=1.5}), a list of an object for each member
// ([{"device": "d3"}, {"name": "p", "value": 1.5}]), or pairs with one of & ; | , / line end, tab
// and space between them, each a name, one of = : => -> and a value (device=d3&p=1.5; with &, as in
// the query of a URL; names may be numbers, 0:0.5 1:0.7). False: it holds none, or names a member
// twice.
bool ReadCellMembers(absl::string_view field, std::vector<JsonMember>* members);

// The text without the escapes of URLs and of partitions' names, "%2F".
std::string PercentDecoded(absl::string_view text);

// Whether pairs and no braces make an object of the field.
bool IsPairs(absl::string_view field);

}  // namespace cistern::data
