#include "common/base/fault_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace cistern {
namespace {

constexpr absl::Duration kAgain = absl::Minutes(1);

std::string SecondsText(absl::Duration duration) {
  return absl::FormatDuration(
      absl::Trunc(duration, absl::Milliseconds(duration < absl::Seconds(1) ? 1 : 100)));
}

}  // namespace

void FaultLog::Report(const absl::Status& outcome, const std::string& consequence, absl::Time now) {
  const std::string message = outcome.ok()                ? std::string()
                              : outcome.message().empty() ? outcome.ToString()
                                                          : std::string(outcome.message());
  std::string passed, begun;
  {
    const absl::MutexLock lock(&mutex_);
    const bool was_failing = !message_.empty();
    if (!was_failing) since_ = now;
    if (!outcome.ok()) {
      ++faults_;
      if (message != message_ || now - logged_ >= kAgain) {
        begun = absl::StrCat(what_, " fails: ", message);
        if (was_failing) absl::StrAppend(&begun, " (failing for ", SecondsText(now - since_), ")");
        if (!consequence.empty()) absl::StrAppend(&begun, "; ", consequence);
        logged_ = now;
      }
    } else if (was_failing) {
      passed = absl::StrCat(what_, " works again, after ", SecondsText(now - since_));
    }
    message_ = message;
  }
  if (!begun.empty()) LogWarning(begun);
  if (!passed.empty()) LogWarning(passed);  // the end shows wherever the beginning does
}

uint64_t FaultLog::faults() const {
  const absl::MutexLock lock(&mutex_);
  return faults_;
}

bool FaultLog::failing() const {
  const absl::MutexLock lock(&mutex_);
  return !message_.empty();
}

}  // namespace cistern
