// HugeCTR's file list: line 1 is the number of files, then one path per line.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern::data {

// Returns the data files of `source`, in order. A source is a file list, a data file, a pattern, or
// several of these, separated by commas. A pattern matches data files only: braces
// (part-{000..127}.tar, {10_500,500_800}/*) and the wildcards * ? [...], whose matches are sorted
// by name. Paths and lists can be remote (worker/data/storage/storage.h).
//
// A relative path in a list is resolved against the current directory, as in HugeCTR, and if no
// file exists there, against the list's folder. A bare name is resolved against the list's folder
// first, so that a folder can be moved together with its list.
//
// kNotFound: the list or a file in it does not exist (names list and line), or nothing matches;
// kDataLoss: the count differs from the number of paths that follow; kInvalidArgument: an empty
// source.
//
// keep_missing: a file that a list names and that does not exist is no error; it stays in the
// result under the name that the list gives it. So does one of several sources that is missing,
// empty or does not unpack.
absl::StatusOr<std::vector<std::string>> ReadFileList(const std::string& source,
                                                      bool keep_missing = false);

// Returns all files that a reader of `source` opens: the sources that it joins by commas, and the
// files in their lists.
// Ignores errors; the reader reports them.
std::vector<std::string> FilesOfSource(const std::string& source);

// Guesses from its first bytes what a file is that is not a data file: "; it is compressed with
// gzip: decompress it", to append to an error message; "" if the bytes give no hint.
std::string KindHint(absl::string_view begin);
// The same for binary files and UTF-16 text only.
std::string BinaryHint(absl::string_view begin);

// Writes a file list of `names` to `path`, atomically. Names are usually bare names of files in the
// same folder.
absl::Status WriteFileList(FileSystem& files, const std::string& path,
                           const std::vector<std::string>& names);

}  // namespace cistern::data
