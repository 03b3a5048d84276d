#include "worker/client/exchange.h"

#include <algorithm>
#include <deque>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"
#include "worker/client/backoff.h"
#include "worker/client/outage.h"

namespace cistern {
namespace {

using Clock = Backoff::Clock;

// The unanswered calls of one server.
struct Lane {
  Lane(absl::Duration retry_limit, uint32_t seed) : backoff(retry_limit, seed) {}
  std::deque<size_t> waiting;
  int in_flight = 0;
  Backoff backoff;
  Clock::time_point not_before;  // of the next call, after a failure
  absl::Duration waited;         // the longest outage that ended
};

// Calls that a sender must have to be worth the start of a thread, which takes less time than one.
constexpr size_t kCallsPerSender = 2;

// One exchange. The senders send; gRPC's threads (or an embedded server, inside the send) deliver
// the replies. Calls in flight share ownership, because one may still hold the lock when
// RunExchange returns.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(absl::Span<const ServerLink> servers, const ExchangePolicy& policy, Transfer& transfer)
      : servers_(servers), policy_(policy), transfer_(transfer) {
    for (size_t s = 0; s < servers.size(); ++s) {
      lanes_.emplace_back(policy.retry_limit, static_cast<uint32_t>(s));
    }
    for (size_t i = 0; i < transfer.call_num(); ++i) {
      lanes_[transfer.server(i)].waiting.push_back(i);
    }
  }

  void AppendOutages(std::vector<std::string>* outages) {
    absl::MutexLock lock(&mutex_);
    for (size_t s = 0; s < lanes_.size(); ++s) {
      if (lanes_[s].waited >= kOutage) {
        outages->push_back(OutageText(s, servers_[s], lanes_[s].waited));
      }
    }
  }

  // Sends until no call is waiting or in flight. Threads: any number of senders.
  absl::Status Work() {
    absl::MutexLock lock(&mutex_);
    while (true) {
      const size_t lane = ReadyLane();
      if (lane < lanes_.size()) {
        const size_t call = lanes_[lane].waiting.front();
        lanes_[lane].waiting.pop_front();
        ++lanes_[lane].in_flight;
        ++in_flight_;
        mutex_.Unlock();
        servers_[lane].data->Call(
            transfer_.kind(), transfer_.Request(call), policy_.call_timeout,
            [self = shared_from_this(), lane, call](const absl::StatusOr<Frame>& reply) {
              self->Finish(lane, call, reply);
            });
        mutex_.Lock();
      } else if (in_flight_ == 0 && (!error_.ok() || !AnyWaiting())) {
        return error_;
      } else {
        changed_.WaitWithTimeout(&mutex_, UntilNextTry());
      }
    }
  }

 private:
  // The next lane, round-robin, that may send; lanes_.size() if none may.
  size_t ReadyLane() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!error_.ok()) return lanes_.size();
    const Clock::time_point now = Clock::now();
    for (size_t k = 0; k < lanes_.size(); ++k) {
      const size_t lane = (turn_ + k) % lanes_.size();
      const Lane& l = lanes_[lane];
      if (!l.waiting.empty() && l.in_flight < Limit(l) && l.not_before <= now) {
        turn_ = lane + 1;
        return lane;
      }
    }
    return lanes_.size();
  }

  // After a failure, one call at a time probes whether the server is back.
  int Limit(const Lane& lane) const { return lane.backoff.failures() > 0 ? 1 : policy_.in_flight; }

  bool AnyWaiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const Lane& lane : lanes_) {
      if (!lane.waiting.empty()) return true;
    }
    return false;
  }

  absl::Duration UntilNextTry() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::Duration shortest = absl::InfiniteDuration();
    const Clock::time_point now = Clock::now();
    if (!error_.ok()) return shortest;  // until the calls in flight end
    for (const Lane& lane : lanes_) {
      if (lane.waiting.empty() || lane.in_flight >= Limit(lane)) continue;
      // Not in the past: ReadyLane read the clock a moment earlier.
      shortest = std::min(shortest,
                          std::max(absl::ZeroDuration(), absl::FromChrono(lane.not_before - now)));
    }
    return shortest;
  }

  // Takes the reply of a call, or its error.
  void Finish(size_t lane, size_t call, const absl::StatusOr<Frame>& reply) {
    const absl::Status status = [&]() -> absl::Status {
      CISTERN_RETURN_IF_ERROR(reply.status());
      FrameReader reader(*reply);
      CISTERN_ASSIGN_OR_RETURN(const FrameHeader header,
                               ReadHeader(reader, transfer_.kind(), /*reply=*/true));
      return transfer_.Reply(call, header, reader);
    }();
    absl::MutexLock lock(&mutex_);
    Lane& l = lanes_[lane];
    --l.in_flight;
    --in_flight_;
    changed_.SignalAll();
    if (status.ok()) {
      l.waited = std::max(l.waited, l.backoff.Waited(Clock::now()));
      l.backoff.Reset();
      return;
    }
    l.waiting.push_front(call);
    if (!IsRetryable(status)) {
      Fail(lane, status);
      return;
    }
    const Clock::time_point now = Clock::now();
    // Calls that fail during the same backoff count as one failure of the server.
    if (l.backoff.failures() > 0 && now < l.not_before) return;
    const std::optional<absl::Duration> delay = l.backoff.Next(now);
    if (!delay) {
      Fail(lane, l.backoff.GaveUp(status));
      return;
    }
    l.not_before = now + absl::ToChronoNanoseconds(*delay);
  }

  void Fail(size_t lane, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (error_.ok()) error_ = AddContext(status, ServerName(lane, servers_[lane]));
  }

  const absl::Span<const ServerLink> servers_;
  const ExchangePolicy policy_;
  Transfer& transfer_;

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::string ServerName(size_t rank, const ServerLink& link) {
  return absl::StrCat("server ", rank, " (", link.name, ")");
}

std::string OutageText(size_t rank, const ServerLink& link, absl::Duration time) {
  return absl::StrCat(ServerName(rank, link), " did not answer for ",
                      absl::FormatDuration(absl::Trunc(time, absl::Milliseconds(100))));
}

absl::Status RunExchange(absl::Span<const ServerLink> servers, const ExchangePolicy& policy,
                         Transfer& transfer, std::vector<std::string>* outages) {
  const size_t senders = std::min(static_cast<size_t>(std::max(policy.senders, 1)),
                                  transfer.call_num() / kCallsPerSender);
  const auto exchange = std::make_shared<Exchange>(servers, policy, transfer);
  std::unique_ptr<ThreadPool> others;
  if (senders > 1) others = std::make_unique<ThreadPool>(static_cast<int>(senders) - 1);
  for (size_t i = 1; i < senders; ++i) others->Run([&] { exchange->Work().IgnoreError(); });
  const absl::Status status = exchange->Work();
  others.reset();
  if (outages != nullptr) exchange->AppendOutages(outages);
  return status;
}

}  // namespace cistern
