#include "common/rpc/health_probe.h"

#include "absl/synchronization/mutex.h"
#include "common/base/log.h"
#include "common/rpc/guarded.h"
#include "common/wire/call_peer.h"

namespace cistern {

struct HealthProbe::State {
  absl::Mutex mutex;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  bool answered ABSL_GUARDED_BY(mutex) = false;
  absl::Status answer ABSL_GUARDED_BY(mutex);

  void Answer(const absl::Status& status) {
    absl::MutexLock lock(&mutex);
    answered = true;
    answer = status;
  }
  bool Over() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return answered || stopping; }
};

HealthProbe::HealthProbe(ControlPlane* plane, ControlThreads* threads,
                         std::function<void(bool)> report, const ProbeTimes& times)
    : plane_(plane),
      threads_(threads),
      report_(std::move(report)),
      times_(times),
      state_(std::make_shared<State>()) {
  thread_.Run([this] { Work(); });
}

HealthProbe::~HealthProbe() {
  absl::MutexLock lock(&state_->mutex);
  state_->stopping = true;
}

void HealthProbe::Ask() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->answered = false;
  }
  threads_->Run(CallLength::kLook, [state = state_, plane = plane_](const absl::Status& refusal) {
    if (!refusal.ok()) return state->Answer(refusal);
    const CallPeer peer("the health probe");
    v1::HelloRequest request;
    request.set_client("the health probe");
    v1::HelloReply reply;
    state->Answer(Guarded([&] { return plane->Hello(request, &reply); }));
  });
}

void HealthProbe::Work() {
  const absl::Status late = absl::DeadlineExceededError(
      absl::StrCat("no answer to Hello within ", absl::FormatDuration(times_.patience)));
  while (true) {
    Ask();
    bool answered = false;
    while (!answered) {
      absl::Status answer;
      {
        absl::MutexLock lock(&state_->mutex);
        state_->mutex.AwaitWithTimeout(absl::Condition(state_.get(), &State::Over),
                                       times_.patience);
        if (state_->stopping) return;
        answered = state_->answered;  // a late Hello is still awaited: only one is ever in flight
        answer = answered ? state_->answer : late;
      }
      Report(answer);
    }
    absl::MutexLock lock(&state_->mutex);
    if (state_->mutex.AwaitWithTimeout(absl::Condition(&state_->stopping), times_.interval)) return;
  }
}

void HealthProbe::Report(const absl::Status& answer) {
  const bool serving = !absl::IsDeadlineExceeded(answer) && !absl::IsUnavailable(answer);
  if (serving == serving_) return;
  serving_ = serving;
  if (serving) {
    LogInfo("health: SERVING again");
  } else {
    LogWarning(absl::StrCat("health: NOT_SERVING: ", answer.message()));
  }
  report_(serving);
}

}  // namespace cistern
