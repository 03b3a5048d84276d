// JSON Lines as a table: one object a line, as logs and exports of databases have it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// Whether the first two lines of a file of this machine are JSON objects; of a file named *.jsonl
// or *.ndjson, the first. It may be compressed.
bool IsJsonLines(const std::string& path);

// kInvalidArgument, with a command that converts it: a local file that begins as one JSON array of
// objects ("[{").
absl::Status CheckNoJsonArray(const std::string& path);

// The columns of JSON Lines files: every member of any of their objects, in the order in which they
// first appear; those of an object inside are named "user.id", and those of objects in an array
// "seen.id".
struct JsonColumns {
  std::vector<std::string> names;
  std::set<std::string> lists;
  // Arrays of arrays, and of objects and values; objects of more than kMaxMembers names.
  std::map<std::string, std::string> unreadable;  // why, by column
};
inline constexpr size_t kMaxMembers = 1000;

// Of those of `files` that are JSON Lines; all of each is read. Errors: as OpenJsonLines.
absl::StatusOr<JsonColumns> FindJsonColumns(const std::vector<std::string>& files,
                                            const ListSeparators& separators = {});

// Of one object: those of standard input, which is read once, are the columns of its first line.
absl::StatusOr<JsonColumns> ColumnsOfObject(absl::string_view object,
                                            const ListSeparators& separators = {});

// A field is a text without its quotes, a number as it is written, 1 or 0 for true and false, and
// empty for null and for a member that is absent. The values of an array have the separator of the
// member between them. columns: null for those of the file.
//
// kDataLoss, with file and line: a line that is no object, or nests too deeply; a value of an array
// that contains the separator.
absl::StatusOr<std::unique_ptr<TextTable>> OpenJsonLines(const std::string& path,
                                                         const ListSeparators& separators = {},
                                                         const JsonColumns* columns = nullptr);

}  // namespace cistern::data
