#include "serve/server/prediction_queue.h"

#include <utility>

namespace cistern::serve {

PredictionQueue::PredictionQueue(int threads, size_t max_in_flight)
    : max_in_flight_(max_in_flight), threads_(std::make_unique<ThreadPool>(threads)) {}

PredictionQueue::~PredictionQueue() = default;

absl::Status PredictionQueue::Run(std::function<void()> work) {
  {
    absl::MutexLock lock(&mutex_);
    if (draining_) return absl::UnavailableError("this server is stopping; ask another one");
    if (in_flight_ >= max_in_flight_) {
      return WithOptions(absl::ResourceExhaustedError(absl::StrCat(
                             max_in_flight_,
                             " requests are already in flight on this server; try again "
                             "in a second, ask another server, or let it take more")),
                         {"serve.max_in_flight"});
    }
    ++in_flight_;
  }
  threads_->Run([this, work = std::move(work)]() mutable {
    work();
    work = nullptr;  // what the request holds is released before it stops counting
    Leave();
  });
  return absl::OkStatus();
}

void PredictionQueue::Leave() {
  absl::MutexLock lock(&mutex_);
  --in_flight_;
}

bool PredictionQueue::Drain(absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
  return mutex_.AwaitWithTimeout(
      absl::Condition(
          +[](size_t* in_flight) { return *in_flight == 0; }, &in_flight_),
      grace);
}

size_t PredictionQueue::in_flight() const {
  absl::MutexLock lock(&mutex_);
  return in_flight_;
}

}  // namespace cistern::serve
