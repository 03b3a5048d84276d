#include "cli/terminal/exit_code.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/shown_text.h"

namespace cistern::cli {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kUnreachable;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return KindOf(status) == ErrorKind::kBadCheckpoint ? ExitCode::kBadCheckpoint
                                                         : ExitCode::kBadData;
    case absl::StatusCode::kCancelled:
      return ExitCode::kInterrupted;
    default:
      return ExitCode::kFailed;
  }
}

std::string FlagOf(absl::string_view option) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(option, absl::MaxSplits('=', 1));
  if (!parts.second.empty()) return absl::StrCat(FlagOf(parts.first), "=", parts.second);
  const size_t dot = option.rfind('.');
  if (dot == absl::string_view::npos) {
    return absl::StrCat("--", absl::StrReplaceAll(option, {{"_", "-"}}));
  }
  const absl::string_view place = option.substr(0, dot), name = option.substr(dot + 1);
  if (absl::StartsWith(place, "cistern-")) return absl::StrCat(place, " --", name);
  return absl::StrCat("cistern ", absl::StrReplaceAll(place, {{".", " "}}), " ", FlagOf(name));
}

std::string MessageOf(const absl::Status& status) {
  std::vector<std::string> flags = OptionsOf(status);
  for (std::string& flag : flags) flag = FlagOf(flag);
  const std::string suffix =
      flags.empty() ? "" : absl::StrCat(" (", absl::StrJoin(flags, ", "), ")");
  return absl::StrCat(status.message(), suffix);
}

std::string OneLine(absl::string_view text) {
  return ShownText(text);
}

std::string ErrorText(const absl::Status& status) {
  std::string text = absl::StrCat("error: ", OneLine(MessageOf(status)), "\n");
  const std::string fix = FixOf(status);
  if (!fix.empty()) absl::StrAppend(&text, "fix: ", OneLine(fix), "\n");
  return text;
}

}  // namespace cistern::cli
