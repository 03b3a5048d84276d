#include "common/rpc/control_threads.h"

#include <utility>

namespace cistern {
namespace {

constexpr size_t kMaxWaiting = 256;  // calls per length

absl::Status Stopping() {
  return absl::UnavailableError("this server is stopping");
}

}  // namespace

ControlThreads::ControlThreads() {
  constexpr int kThreads[] = {2, 4, 4, 8};
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = std::make_unique<Lane>(kThreads[i]);
}

void ControlThreads::Run(CallLength length, Work work) {
  Lane& lane = *lanes_[static_cast<size_t>(length)];
  absl::Status refusal;
  {
    absl::MutexLock lock(&lane.mutex);
    if (lane.stopped) {
      refusal = Stopping();
    } else if (lane.waiting.size() >= kMaxWaiting) {
      refusal = absl::UnavailableError(absl::StrCat(
          kMaxWaiting, " calls of this kind are already waiting on this server; try again"));
    } else {
      lane.waiting.push_back(std::move(work));
    }
  }
  if (!refusal.ok()) return work(refusal);
  lane.threads->Run([&lane] { RunNext(&lane); });
}

void ControlThreads::RunNext(Lane* lane) {
  Work work;
  {
    absl::MutexLock lock(&lane->mutex);
    if (lane->waiting.empty()) return;  // Stop has refused the call
    work = std::move(lane->waiting.front());
    lane->waiting.pop_front();
  }
  work(absl::OkStatus());
}

void ControlThreads::Stop() {
  for (const auto& lane : lanes_) {
    std::deque<Work> refused;
    {
      absl::MutexLock lock(&lane->mutex);
      lane->stopped = true;
      refused.swap(lane->waiting);
    }
    for (const Work& work : refused) work(Stopping());
  }
}

}  // namespace cistern
