#include "server/service/refusal_log.h"

#include <string>

#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/wire/call_peer.h"

namespace cistern::server {
namespace {

// A message may contain text from the caller.
std::string PlainText(absl::string_view text) {
  constexpr size_t kMaxBytes = 600;
  std::string plain(text.substr(0, kMaxBytes));
  for (char& c : plain) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > kMaxBytes) plain += "...";
  return plain;
}

bool IsRefusal(const absl::Status& status) {
  return !status.ok() && !absl::IsUnavailable(status) && !absl::IsNotFound(status);
}

bool NeedsAPerson(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsDataLoss(status) || absl::IsResourceExhausted(status);
}

}  // namespace

void RefusalLog::Note(absl::string_view method, const absl::Status& status) {
  if (!IsRefusal(status)) return;
  uint64_t left_out = 0;
  const bool may_write = MayWrite(&left_out);
  if (!may_write || !CallPeer::IsRemote()) return;  // a caller in this process gets the status
  std::string line =
      absl::StrCat(NeedsAPerson(status) ? "failed " : "refused ", method, " from ",
                   PlainText(CallPeer::Current()), ": ", absl::StatusCodeToString(status.code()),
                   ": ", PlainText(status.message()));
  if (left_out > 0) absl::StrAppend(&line, " (", left_out, " earlier refusals were not logged)");
  if (NeedsAPerson(status)) {
    LogError(line);
  } else {
    LogWarning(line);
  }
}

uint64_t RefusalLog::refused() const {
  absl::MutexLock lock(&mutex_);
  return refused_;
}

bool RefusalLog::MayWrite(uint64_t* left_out) {
  absl::MutexLock lock(&mutex_);
  ++refused_;
  const absl::Time now = absl::Now();
  if (now - window_ > kWindow) {
    window_ = now;
    lines_ = 0;
  }
  if (lines_ >= kLines) {
    ++left_out_;
    return false;
  }
  ++lines_;
  *left_out = left_out_;
  left_out_ = 0;
  return true;
}

}  // namespace cistern::server
