// The difference between two states of a model, as files: the rows that changed, the keys that
// went, and the dense tables. Byte by byte: docs/formats.md.
//
// clang-format off
//   NAME/<table>/rows      sparse: the rows that are new or have another value; dense: all rows
//   NAME/<table>/removed   the keys that are gone, one per line; absent if there are none
//   NAME/increment.json    written last: both states, and a list of the files
// clang-format on
//
// Rows look as in a saved model (model_folder.h), with the same suffixes. An increment fits a model
// whose tables have the row counts and digests of its first state, and makes one that has those of
// its second state, so that a gap, a wrong order, a repetition and a damaged row are all noticed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/io/file_system.h"
#include "common/saved_model/model_file.h"
#include "proto/checkpoint.pb.h"

namespace cistern {

inline constexpr char kIncrementName[] = "increment.json";

// The names of files below the folder.
std::string IncrementRowsName(const std::string& table, const v1::SaveFormat& format);
std::string IncrementRemovedName(const std::string& table, const v1::SaveFormat& format);

// Whether `folder` holds an increment.
absl::StatusOr<bool> IsIncrement(FileSystem& files, const std::string& folder);

// Writes increment.json, which makes the increment exist, after its files. kAlreadyExists: the
// folder holds one. kInvalidArgument: its files do not match its schema.
absl::Status WriteIncrement(FileSystem& files, const std::string& folder,
                            const v1::Increment& increment);

// kNotFound: the folder holds no increment. kDataLoss, naming the file: it is unreadable or
// contradictory.
absl::StatusOr<v1::Increment> ReadIncrement(FileSystem& files, const std::string& folder);

// The file with that name, ready to be read; nullptr if the increment does not list it.
const v1::IncrementFile* FindFile(const v1::Increment& increment, const std::string& name);
// The format of its files with rows.
v1::SaveFormat FormatOf(const v1::Increment& increment);

// Visits the changed rows of a sparse table, in no particular order. kDataLoss, with file and
// line: an unreadable row, a repeated or reserved key, or a file that is not as recorded; then the
// caller must discard what it has received.
// value: full_floats cells.
absl::Status ReadIncrementRows(
    FileSystem& files, const std::string& folder, const v1::Increment& increment, TableId table,
    const std::function<absl::Status(Key, const float* value, bool has_embedx)>& visit);
// Visits the keys of a sparse table that are gone. kDataLoss as above.
absl::Status ReadIncrementRemoved(FileSystem& files, const std::string& folder,
                                  const v1::Increment& increment, TableId table,
                                  const std::function<absl::Status(Key)>& visit);
// Reads a dense table, [rows, columns]; empty if it was never written. kDataLoss as above.
absl::StatusOr<std::vector<float>> ReadIncrementDense(FileSystem& files, const std::string& folder,
                                                      const v1::Increment& increment,
                                                      TableId table);

// Whether both states have the same rows in all tables: their row counts and digests are equal.
bool SameRows(const v1::IncrementState& a, const v1::IncrementState& b);
// "commit 12", or "pass 7" if the commit is not known.
std::string StateText(const v1::IncrementState& state);

}  // namespace cistern
