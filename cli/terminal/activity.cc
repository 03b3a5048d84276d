#include "cli/terminal/activity.h"

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/amount_text.h"

namespace cistern::cli {

std::string ActivityLine(const std::string& what, const std::string& unit, uint64_t done,
                         uint64_t total, double seconds, bool terminal) {
  if (!terminal) {
    return absl::StrFormat("event=%s done=%d total=%d unit=%s seconds=%.1f", what, done, total,
                           unit, seconds);
  }
  return absl::StrFormat("%s  %d of %d %s  %s", what, done, total, unit, DurationText(seconds));
}

Activity::Activity(Console* console) : console_(console), start_(absl::Now()) {
  if (console_ == nullptr) return;
  thread_ = std::make_unique<ThreadPool>(1);
  thread_->Run([this] { Run(); });
}

Activity::~Activity() {
  if (console_ == nullptr) return;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  thread_.reset();
  console_->Update("");
}

void Activity::Show(const std::string& what, const std::string& unit, uint64_t done,
                    uint64_t total) {
  absl::MutexLock lock(&mutex_);
  what_ = what;
  unit_ = unit;
  done_ = done;
  total_ = total;
}

void Activity::Say(const std::string& line) {
  if (console_ == nullptr) return;
  absl::MutexLock lock(&mutex_);
  console_->Say(line);
}

void Activity::Run() {
  const bool terminal = console_->is_terminal();
  const absl::Duration pause = absl::Seconds(terminal ? 1 : 10);
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&ended_), pause)) {
    if (what_.empty()) continue;
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start_);
    const std::string line = ActivityLine(what_, unit_, done_, total_, seconds, terminal);
    terminal ? console_->Update(line) : console_->Say(line);
  }
}

}  // namespace cistern::cli
