// Encodes rows of text that come one by one, as a serving process receives them.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "worker/data/recipe/recipe_folder.h"

namespace cistern::data {

// FeatureColumns(recipe) with the columns of lists and objects instead of their parts
// (part_columns.h); the same if there are none.
std::vector<std::string> WholeColumns(const Recipe& recipe);

// Encodes rows, each the text of its fields: FeatureColumns(recipe) in this order, without labels,
// or WholeColumns(recipe), if these are another number.
//
// fields: [rows, columns], row by row; columns: 0 means those of FeatureColumns(recipe). slot_nums:
// of the model's sparse inputs, which share the slots of the recipe in order. block: is replaced;
// labels are -1. kInvalidArgument names row (from 0) and column; another number of columns, lists
// of other lengths than in training, and fields that are no objects, too.
absl::Status EncodeFields(const OwnedEncoder& encoder, absl::Span<const absl::string_view> fields,
                          absl::Span<const uint32_t> slot_nums, SampleBlock* block,
                          size_t columns = 0);

// The same for rows that are lines, as in a file of the training data's format (CSV with its
// delimiter, for example) but with these columns only; lines of libsvm and libffm may have their
// label. A row may also be a JSON object with these columns among its members, in any order, and
// null for a missing value: kInvalidArgument if it lacks one. A line end after a row (LF, CRLF or
// CR) is ignored. kInvalidArgument: also another number of fields.
absl::Status EncodeLines(const OwnedEncoder& encoder, absl::Span<const absl::string_view> lines,
                         absl::Span<const uint32_t> slot_nums, SampleBlock* block);

}  // namespace cistern::data
