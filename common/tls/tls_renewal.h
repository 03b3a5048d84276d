// Reads the certificates of a server again when their files change.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/fault_log.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/tls/tls_files.h"

namespace cistern {

// Certificates that do not fit are logged, and those in use stay.
//
// Threads: runs one of its own. Construction and destruction from one other thread.
class TlsRenewal {
 public:
  // What became of a look at the files that changed something, or failed twice.
  enum class Outcome { kRenewed, kFailing, kRecovered };

  // read: reads the files anew (ReadTls, ReadMutualTls). used: what the server uses now. use: makes
  // it use others; after an error those before stay. report: called with each outcome. All three
  // are called on the thread of this object. name: the certificate, for the log.
  TlsRenewal(
      std::string name, std::function<absl::StatusOr<TlsPem>()> read, const TlsPem& used,
      std::function<absl::Status(const TlsPem&)> use,
      std::function<void(Outcome)> report = [](Outcome) {},
      absl::Duration every = absl::Seconds(1));
  ~TlsRenewal();

 private:
  void CheckFiles();

  const std::string name_;
  const std::function<absl::StatusOr<TlsPem>()> read_;
  const std::function<absl::Status(const TlsPem&)> use_;
  const std::function<void(Outcome)> report_;

  // Used by the thread only:
  TlsPem used_;
  bool failed_ = false;   // the last look
  bool failing_ = false;  // reported
  FaultLog faults_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ThreadPool> thread_;
};

}  // namespace cistern
