// The HoldTerm calls that are open on a server: each stays open for as long as its writer's
// connection lives, and tells the control plane when it begins and ends.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/connection_book.h"
#include "common/wire/planes.h"

namespace cistern {

// Threads: any thread.
class OpenHolds {
 public:
  explicit OpenHolds(ControlPlane* plane) : plane_(plane) {}
  OpenHolds(const OpenHolds&) = delete;
  OpenHolds& operator=(const OpenHolds&) = delete;

  // A call that ends when its connection does, when the caller cancels it, or with Stop. It ends at
  // once with the error of BeginHold, or with kUnavailable where too many are open.
  grpc::ServerUnaryReactor* Open(const v1::Identity& identity, ConnectionBook::Call held);

  // Ends all, with kUnavailable, and refuses those that come.
  void Stop();

 private:
  class Hold;

  // False: no more are taken.
  bool Enter(Hold* hold);
  void Leave(Hold* hold);

  ControlPlane* const plane_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Hold*> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
