#include "common/base/status.h"

#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace cistern {
namespace {

constexpr absl::string_view kKindUrl = "cistern/kind";
constexpr absl::string_view kFixUrl = "cistern/fix";
constexpr absl::string_view kOptionsUrl = "cistern/options";

std::string PayloadOf(const absl::Status& status, absl::string_view url) {
  const auto payload = status.GetPayload(url);
  return payload.has_value() ? std::string(*payload) : "";
}

absl::Status Rebuilt(const absl::Status& status, absl::StatusCode code, absl::string_view message) {
  if (status.ok()) return status;
  absl::Status result(code, message);
  status.ForEachPayload(
      [&result](absl::string_view url, const absl::Cord& value) { result.SetPayload(url, value); });
  return result;
}

}  // namespace

absl::Status WithKind(absl::Status status, ErrorKind kind) {
  status.SetPayload(kKindUrl, absl::Cord(std::string(1, static_cast<char>(kind))));
  return status;
}

ErrorKind KindOf(const absl::Status& status) {
  const std::string kind = PayloadOf(status, kKindUrl);
  if (kind.size() != 1) return ErrorKind::kNone;
  const uint8_t number = static_cast<uint8_t>(kind[0]);
  const bool known = number <= static_cast<uint8_t>(ErrorKind::kTable);
  return known ? static_cast<ErrorKind>(number) : ErrorKind::kNone;
}

absl::Status WithFix(absl::Status status, absl::string_view fix) {
  if (!fix.empty()) status.SetPayload(kFixUrl, absl::Cord(fix));
  return status;
}

std::string FixOf(const absl::Status& status) {
  return PayloadOf(status, kFixUrl);
}

absl::Status WithOptions(absl::Status status, const std::vector<std::string>& options) {
  status.SetPayload(kOptionsUrl, absl::Cord(absl::StrJoin(options, " ")));
  return status;
}

std::vector<std::string> OptionsOf(const absl::Status& status) {
  return absl::StrSplit(PayloadOf(status, kOptionsUrl), ' ', absl::SkipEmpty());
}

absl::Status AddContext(const absl::Status& status, absl::string_view context) {
  return Rebuilt(status, status.code(), absl::StrCat(context, ": ", status.message()));
}

absl::Status WithCode(const absl::Status& status, absl::StatusCode code) {
  return Rebuilt(status, code, status.message());
}

absl::Status WithMessage(const absl::Status& status, absl::string_view message) {
  return Rebuilt(status, status.code(), message);
}

}  // namespace cistern
