// Asks a server's control plane every second whether it still answers, the way a caller would: a
// health check that only says that the process lives would keep a dead server in service.
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
  absl::Duration patience = absl::Seconds(5);  // without an answer for so long, it is not serving
};

// Threads: it has one of its own.
class HealthProbe {
 public:
  // Sends Hello to `plane` through `threads`, and calls `report` from a thread of its own whenever
  // serving becomes true or false; it is true at first. Both outlive the probe, and every call.
  HealthProbe(ControlPlane* plane, ControlThreads* threads, std::function<void(bool)> report,
              const ProbeTimes& times = {});
  ~HealthProbe();  // does not wait for an answer

 private:
  struct State;  // shared with a Hello under way, which may outlive the probe

  void Work();
  void Ask();
  void Report(const absl::Status& answer);

  ControlPlane* const plane_;
  ControlThreads* const threads_;
  const std::function<void(bool)> report_;
  const ProbeTimes times_;
  const std::shared_ptr<State> state_;
  bool serving_ = true;  // of the probe's thread
  ThreadPool thread_{1};
};

}  // namespace cistern
