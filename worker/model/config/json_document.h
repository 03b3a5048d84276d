// Parses JSON text into a tree, with errors that give line and column, and applies command-line
// overrides to that tree.
//
// Only .cc files include this header, because the JSON library is slow to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace cistern::model {

// Keeps keys in file order, so that messages follow that order.
using Json = nlohmann::ordered_json;

// Parses a text. kInvalidArgument: "line 3, column 5: ..." for a syntax error; also for a key that
// occurs twice in one object, which JSON libraries accept silently.
absl::StatusOr<Json> ParseJson(const std::string& text);

// Removes "comment": "text" from every object.
void RemoveComments(Json* value);

// Applies "a.b.c=value" to the tree. Missing objects on the path are created; an array element is
// addressed by its position or by its "name" or "top". value: JSON, a number as .5 or +5, or a
// bare word, which is a string.
// kInvalidArgument names the part of the path that does not exist.
absl::Status ApplyOverride(const std::string& override_text, Json* root);

// Returns every value of the tree with its path, in order: {"layers[3].fc_param.num_output",
// "200"}. An array without objects is one value. Equal numbers have equal text, however they were
// written.
std::vector<std::pair<std::string, std::string>> FlattenJson(const Json& root);

// Describes a value for messages: "the string \"abc\"", "the number 12", "an array".
std::string DescribeJson(const Json& value);

}  // namespace cistern::model
