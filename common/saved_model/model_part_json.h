// The JSON text of one part of a saved model (docs/formats.md).
//
// The text ends with "self_xxh3", the XXH3 of every byte before that member's name, so that a
// flipped bit in the JSON is detected as reliably as one in the rows.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "common/saved_model/model_folder.h"

namespace cistern {

std::string FormatPart(const ModelPart& part);

// kDataLoss, stating the cause: not JSON, a field that is missing or has the wrong type, a hash
// mismatch, or a format that this version does not know. Does not interpret the fields.
absl::StatusOr<ModelPart> ParsePart(absl::string_view text);

}  // namespace cistern
