// JSON Lines as a table: one object a line, as logs and exports of databases have it.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/data/recipe/text_table.h"

namespace cistern {

// Whether the first two lines of a file of this machine are JSON objects; of a file named *.jsonl
// or *.ndjson, the first. It may be compressed.
bool IsJsonLines(const std::string& path);

// kInvalidArgument, with a command that converts it: a file of this machine is one JSON array of
// objects, by its first two characters.
absl::Status CheckNoJsonArray(const std::string& path);

// Columns are the members of the objects in the first kJsonRowsPeeked lines, in the order in which
// they appear; those of an object inside are named "user.id". Members that appear later are
// skipped. A field is a text without its quotes, a number as it is written, 1 or 0 for true and
// false, and empty for null and for a member that is absent. The values of an array have the
// separator of the member between them; those of an array of objects are in a column for each of
// their members ("seen.id"). Arrays of arrays, and of objects and values, cannot be read
// (WhyUnreadable).
//
// kDataLoss, with file and line: a line that is no object, or nests too deeply; a value of an array
// that contains the separator.
absl::StatusOr<std::unique_ptr<TextTable>> OpenJsonLines(const std::string& path,
                                                         const ListSeparators& separators = {});

inline constexpr size_t kJsonRowsPeeked = 1000;

}  // namespace cistern
