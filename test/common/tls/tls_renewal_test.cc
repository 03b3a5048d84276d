#include "common/tls/tls_renewal.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/mutex.h"
#include "test/support/certificates.h"

namespace cistern {
namespace {

// What a renewal uses and reports.
class Watched {
 public:
  absl::Status Use(const TlsPem& tls) {
    absl::MutexLock lock(&mutex_);
    used_.push_back(tls.cert);
    return absl::OkStatus();
  }
  void Report(TlsRenewal::Outcome outcome) {
    absl::MutexLock lock(&mutex_);
    outcomes_.push_back(outcome);
  }
  void AwaitOutcomes(size_t count) {
    const auto reached = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return outcomes_.size() >= count;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&reached));
  }
  std::vector<std::string> used() const {
    absl::MutexLock lock(&mutex_);
    return used_;
  }
  std::vector<TlsRenewal::Outcome> outcomes() const {
    absl::MutexLock lock(&mutex_);
    return outcomes_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> used_ ABSL_GUARDED_BY(mutex_);
  std::vector<TlsRenewal::Outcome> outcomes_ ABSL_GUARDED_BY(mutex_);
};

TEST(TlsRenewal, UsesReplacedFilesAndReportsThoseThatDoNotFit) {
  const TestAuthority authority;
  const TlsFiles files = authority.Issue("server", {Role::kServer});
  const TlsPem first = *ReadMutualTls(files);
  Watched watched;
  TlsRenewal renewal(
      files.cert, [&] { return ReadMutualTls(files); }, first,
      [&](const TlsPem& tls) { return watched.Use(tls); },
      [&](TlsRenewal::Outcome outcome) { watched.Report(outcome); }, absl::Milliseconds(5));
  authority.Issue("server", {Role::kServer});
  watched.AwaitOutcomes(1);
  const TlsPem second = *ReadMutualTls(files);
  EXPECT_EQ(watched.used(), std::vector<std::string>{second.cert});
  WriteBytes(files.cert, first.cert);  // of another key
  watched.AwaitOutcomes(2);
  EXPECT_EQ(watched.used().size(), 1u);
  WriteBytes(files.cert, second.cert);
  watched.AwaitOutcomes(3);
  using Outcome = TlsRenewal::Outcome;
  EXPECT_EQ(watched.outcomes(),
            (std::vector<Outcome>{Outcome::kRenewed, Outcome::kFailing, Outcome::kRecovered}));
}

}  // namespace
}  // namespace cistern
