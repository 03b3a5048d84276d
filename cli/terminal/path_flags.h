// What the values of flags and arguments that hold paths mean, before a command sees them.
#pragma once

#include <string>

#include "cli/terminal/remote_paths.h"
#include "cli/terminal/report.h"
#include "common/base/status.h"

namespace cistern::cli {

// Splits the values of a list of paths (worker/data/storage/path_list.h). Returns what to say, if
// the command fails, about a path that does not exist and may be a part of one with a comma; "" if
// there is none.
std::string SplitPathFlag(PathFlag* flag);

// kInvalidArgument: a path below a file, which leads nowhere.
absl::Status CheckNotBelowFile(const PathFlag& flag);

// Adds `note` to what the user can do about the error of a command that did not find its files.
absl::StatusOr<Report> WithNote(absl::StatusOr<Report> report, const std::string& note);

}  // namespace cistern::cli
