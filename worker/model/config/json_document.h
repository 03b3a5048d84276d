// JSON text to a tree, with messages that say where; and overrides from a command line on that
// tree.
//
// Included by the .cc files of this folder only: the JSON library is slow to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace cistern {

// Keeps the order of the file, so that messages come in it.
using Json = nlohmann::ordered_json;

// Parses a text. kInvalidArgument: "line 3, column 5: ..." for a syntax error, and for a key that
// one object holds twice (JSON libraries take either, silently).
absl::StatusOr<Json> ParseJson(const std::string& text);

// Applies "a.b.c=value" to the tree: objects on the way are created, elements of arrays are named
// by position or by their "name" or "top". value: JSON, or a bare word, which is a string.
// kInvalidArgument names the part of the path that does not lead on.
absl::Status ApplyOverride(const std::string& override_text, Json* root);

// Every value of the tree by its path, in order: {"layers[3].fc_param.num_output", "200"}. An array
// without objects is one value. A number has one text, however it was written.
std::vector<std::pair<std::string, std::string>> FlattenJson(const Json& root);

// "string \"abc\"", "integer 12", "array": what a value is, for messages.
std::string DescribeJson(const Json& value);

}  // namespace cistern
