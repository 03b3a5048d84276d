// The json text of one part of a saved model (docs/formats.md).
//
// The text ends with "self_xxh3": the XXH3 of every byte before that member's name, so that a
// flipped bit in the numbers is found as surely as one in the rows.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/saved_model/model_folder.h"

namespace cistern {

std::string FormatPart(const ModelPart& part);

// kDataLoss that says what is wrong: not json, a field missing or of another type, another hash, a
// format that this version does not know. Does not look at what the fields mean.
absl::StatusOr<ModelPart> ParsePart(absl::string_view text);

}  // namespace cistern
