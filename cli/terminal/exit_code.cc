#include "cli/terminal/exit_code.h"

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/types/optional.h"

namespace cistern {
namespace {

constexpr char kCheckpoint[] = "cistern/checkpoint";
constexpr char kFix[] = "cistern/fix";

}  // namespace

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
      return status.GetPayload(kCheckpoint).has_value() ? ExitCode::kBadCheckpoint
                                                        : ExitCode::kBadData;
    case absl::StatusCode::kCancelled:
      return ExitCode::kInterrupted;
    default:
      return ExitCode::kFailed;
  }
}

absl::Status FromCheckpoint(absl::Status status) {
  status.SetPayload(kCheckpoint, absl::Cord());
  return status;
}

absl::Status WithFix(absl::Status status, const std::string& fix) {
  if (!fix.empty()) status.SetPayload(kFix, absl::Cord(fix));
  return status;
}

std::string FixOf(const absl::Status& status) {
  const absl::optional<absl::Cord> fix = status.GetPayload(kFix);
  return fix.has_value() ? std::string(*fix) : "";
}

absl::Status AddContextAndMarks(const absl::Status& status, const std::string& context) {
  absl::Status result = AddContext(status, context);
  status.ForEachPayload(
      [&result](absl::string_view url, const absl::Cord& value) { result.SetPayload(url, value); });
  return result;
}

std::string OneLine(absl::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line += is_control ? absl::CHexEscape(absl::string_view(&c, 1)) : std::string(1, c);
  }
  return line;
}

std::string ErrorText(const absl::Status& status) {
  std::string text = absl::StrCat("error: ", OneLine(status.message()), "\n");
  const std::string fix = FixOf(status);
  if (!fix.empty()) absl::StrAppend(&text, "fix: ", OneLine(fix), "\n");
  return text;
}

}  // namespace cistern
