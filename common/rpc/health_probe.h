// Checks every second that a server's control plane still answers calls. A health check that only
// shows that the process is alive would keep a hung server in service.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "common/base/thread_pool.h"
#include "common/rpc/control_threads.h"
#include "common/wire/planes.h"

namespace cistern {

struct ProbeTimes {
  absl::Duration interval = absl::Seconds(1);
  absl::Duration patience = absl::Seconds(5);  // time without an answer until "not serving"
};

// Threads: runs a thread of its own.
class HealthProbe {
 public:
  // Sends Hello to `plane` through `threads`, and calls `report` on the probe's thread whenever the
  // serving state changes; it starts as true. `plane` and `threads` outlive the probe and every
  // call.
  HealthProbe(ControlPlane* plane, ControlThreads* threads, std::function<void(bool)> report,
              const ProbeTimes& times = {});
  ~HealthProbe();  // does not wait for an answer

 private:
  struct State;  // shared with a Hello in progress, which may outlive the probe

  void Work();
  void Ask();
  void Report(const absl::Status& answer);

  ControlPlane* const plane_;
  ControlThreads* const threads_;
  const std::function<void(bool)> report_;
  const ProbeTimes times_;
  const std::shared_ptr<State> state_;
  bool serving_ = true;  // used by the probe's thread only
  ThreadPool thread_{1};
};

}  // namespace cistern
