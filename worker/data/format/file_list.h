// HugeCTR's file list: line 1 is the number of files, then one path a line.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// Names the data files of `source`, in order. A source is a file list or a data file, or several of
// either, separated by commas.
//
// A relative path of a list counts from the current directory, as in HugeCTR, and where nothing
// stands there, from the list's folder. A bare name counts from the list's folder first, so that a
// folder with its list can be moved.
//
// kNotFound: no such list, or no such file (with list and line); kDataLoss: a count that does not
// agree with the paths that follow; kInvalidArgument: an empty source.
absl::StatusOr<std::vector<std::string>> ReadFileList(const std::string& source);

// `source` and what its lists name: the files that a reader of it opens. Errors are left to that
// reader.
std::vector<std::string> FilesOfSource(const std::string& source);

// What a file that is no data file may be, from its first bytes: "; it is packed by gzip: unpack
// it", to be put behind an error; "" where they say nothing.
std::string KindHint(absl::string_view begin);
// The same for what is not even text of one byte a character.
std::string BinaryHint(absl::string_view begin);

// Writes a list of `names`, usually bare names of files beside it, at `path`; complete or not at
// all.
absl::Status WriteFileList(FileSystem& files, const std::string& path,
                           const std::vector<std::string>& names);

}  // namespace cistern
