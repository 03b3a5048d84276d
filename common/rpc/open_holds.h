// The open HoldTerm calls of a server. Each stays open as long as its writer's connection lives,
// and notifies the control plane when it begins and ends.
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

  // Opens a call that ends when its connection ends, when the caller cancels it, or on Stop. Its
  // initial metadata, sent at once, tell the caller that BeginHold was called. It
  // ends at once with the error of BeginHold, or with kUnavailable if too many calls are open.
  grpc::ServerUnaryReactor* Open(const v1::HoldTermRequest& request, ConnectionBook::Call held);

  // Ends all calls with kUnavailable and refuses new ones.
  void Stop();

 private:
  class Hold;

  // False: stopped, or too many are open.
  bool Enter(Hold* hold);
  void Leave(Hold* hold);

  ControlPlane* const plane_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Hold*> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
