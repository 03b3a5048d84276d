#include "common/tls/tls_renewal.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace cistern {

TlsRenewal::TlsRenewal(std::string name, std::function<absl::StatusOr<TlsPem>()> read,
                       const TlsPem& used, std::function<absl::Status(const TlsPem&)> use,
                       std::function<void(Outcome)> report, absl::Duration every)
    : name_(std::move(name)),
      read_(std::move(read)),
      use_(std::move(use)),
      report_(std::move(report)),
      used_(used),
      faults_("reading renewed certificates"),
      thread_(std::make_unique<ThreadPool>(1)) {
  thread_->Run([this, every] {
    for (;;) {
      {
        const absl::MutexLock lock(&mutex_);
        if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), every)) return;
      }
      CheckFiles();
    }
  });
}

TlsRenewal::~TlsRenewal() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_ = nullptr;  // waits for its end
}

// The files are small, and a copy that keeps the time of a file changes no time, so they are read
// every time.
void TlsRenewal::CheckFiles() {
  const absl::StatusOr<TlsPem> read = read_();
  absl::Status outcome = read.status();
  if (read.ok() && *read != used_) {
    outcome = use_(*read);
    if (outcome.ok()) {
      used_ = *read;
      report_(Outcome::kRenewed);
      LogInfo(absl::StrCat("new connections use the renewed certificate ", name_));
    }
  }
  // Files are replaced one after the other, so only what fails twice is a fault.
  const bool is_first = !outcome.ok() && !failed_;
  failed_ = !outcome.ok();
  if (is_first) return;
  if (failing_ != failed_) report_(failed_ ? Outcome::kFailing : Outcome::kRecovered);
  failing_ = failed_;
  faults_.Report(outcome, "the certificates before stay in use");
}

}  // namespace cistern
