// The secrets of runs with several workers. Worker 0 leaves one here, and the other workers, which
// may reach the servers, fetch it. A process that reaches only the rendezvous port of the workers
// does not know it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/synchronization/mutex.h"
#include "common/base/status.h"

namespace cistern::server {

// Threads: any thread.
class RunSecrets {
 public:
  static constexpr size_t kMaxRuns = 256;          // beyond it, the oldest is dropped
  static constexpr size_t kMaxAddressBytes = 300;  // a host name of 253 characters, and a port

  // secret: not 0; that of the run whose worker 0 listens at `address`. kInvalidArgument for an
  // address that is empty or too long.
  absl::Status Leave(const std::string& address, uint64_t secret);
  // The secret of the run at `address`; 0 if its worker 0 has left none.
  uint64_t Find(const std::string& address) const;

 private:
  struct Run {
    uint64_t secret = 0, age = 0;
  };
  mutable absl::Mutex mutex_;
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Run> runs_ ABSL_GUARDED_BY(mutex_);  // by address
};

}  // namespace cistern::server
