// Reads the certificates of a server again when their files change.
#pragma once

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/fault_log.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "serve/server/metrics.h"
#include "serve/server/tls.h"

namespace cistern {

// Certificates that do not fit are logged, and those in use stay.
//
// Threads: runs one of its own. Construction and destruction from one other thread.
class TlsRenewal {
 public:
  // used: what the server uses now. use: makes it use others; called on the thread of this object.
  // After an error of `use` those before stay. metrics: outlives this.
  TlsRenewal(const TlsFiles& files, const TlsPem& used,
             std::function<absl::Status(const TlsPem&)> use, ServeMetrics* metrics,
             absl::Duration every = absl::Seconds(1));
  ~TlsRenewal();

 private:
  void Look();

  const TlsFiles files_;
  const std::function<absl::Status(const TlsPem&)> use_;
  ServeMetrics* const metrics_;

  // Used by the thread only:
  TlsPem used_;
  bool failed_ = false;  // the last look
  FaultLog faults_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ThreadPool> thread_;
};

}  // namespace cistern
