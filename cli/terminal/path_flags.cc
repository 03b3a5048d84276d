#include "cli/terminal/path_flags.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/terminal/exit_code.h"
#include "worker/data/storage/path_list.h"
#include "worker/data/storage/storage.h"

namespace cistern::cli {

std::string SplitPathFlag(PathFlag* flag) {
  std::string note;
  std::vector<std::string> paths;
  for (const std::string& text : flag->values) {
    const std::vector<std::string> parts = data::SplitPaths(text);
    for (const std::string& part : parts) {
      if (part.empty()) continue;
      paths.push_back(part);
      const bool is_name = !data::IsRemote(part) && !data::IsPattern(part) && part != "-" &&
                           !absl::StrContains(part, "{");
      if (parts.size() == 1 || !note.empty() || !is_name || data::PathExists(part)) continue;
      note = absl::StrCat("a comma separates paths, so ", flag->name, " '", text, "' named '", part,
                          "', which does not exist; to name one path that has a comma, check that "
                          "it exists");
    }
  }
  if (!paths.empty()) flag->values = std::move(paths);
  return note;
}

absl::Status CheckNotBelowFile(const PathFlag& flag) {
  for (const std::string& value : flag.values) {
    std::error_code error;
    for (std::filesystem::path at = std::filesystem::path(value).parent_path();
         !at.empty() && at != at.root_path(); at = at.parent_path()) {
      if (!std::filesystem::is_regular_file(at, error)) continue;
      return WithFix(absl::InvalidArgumentError(absl::StrCat(
                         flag.name, ": ", value, ": ", at.string(), " is a file, not a folder")),
                     "name another place");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Report> WithNote(absl::StatusOr<Report> report, const std::string& note) {
  const absl::Status status = report.ok() ? report->outcome : report.status();
  if (!absl::IsInvalidArgument(status) && !absl::IsNotFound(status)) return report;
  const std::string fix = FixOf(status);
  const absl::Status explained =
      WithFix(status, fix.empty() ? note : absl::StrCat(fix, "; ", note));
  if (!report.ok()) return explained;
  report->outcome = explained;
  return report;
}

}  // namespace cistern::cli
