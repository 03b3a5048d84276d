// The workers that train one model together: who they are, and what they tell each other between
// steps. What a step sums and exchanges goes through a Communicator (cuda/collective).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "cuda/collective/communicator.h"
#include "worker/group/group_options.h"

namespace cistern {

// How the workers of a run find each other.
struct GroupPlace {
  uint32_t rank = 0, size = 1;
  std::string address;  // "host:port" of worker 0, who listens there
  GroupSecret secret;   // of the run (training_group.h); groups made from the first get their own
  // Set by a signal handler: nobody is waited for any more (kCancelled). May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

// All workers make the same calls in the same order. An error names the worker that is at fault,
// and ends the group: it is not mended, a new one is formed. A worker that ends is noticed at once;
// one that is there but does not come is waited for.
//
// Threads: one at a time; another thread takes another group of the same workers (Another).
class ProcessGroup {
 public:
  static constexpr uint64_t kMaxMessageBytes = uint64_t{16} << 30;

  // Waits until all are there. kInvalidArgument: a place that cannot be; kUnavailable,
  // kDeadlineExceeded: who is missing.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Form(const GroupPlace& place,
                                                            std::chrono::milliseconds limit);

  uint32_t rank() const { return static_cast<uint32_t>(peers_->rank()); }
  uint32_t size() const { return static_cast<uint32_t>(peers_->size()); }
  bool leads() const { return rank() == 0; }

  // to[r] goes to worker r; returns what each sent here. [size], the own included. The longest
  // message is kMaxMessageBytes. kInternal for a longer one that a worker announces,
  // kResourceExhausted for one that this machine has no memory for.
  absl::StatusOr<std::vector<std::string>> Exchange(const std::vector<std::string>& to);
  // The same of what may fail: where some have an error to say, that of the first, with its name,
  // at all others, and everybody's own at itself.
  absl::StatusOr<std::vector<std::string>> TryExchange(
      const absl::StatusOr<std::vector<std::string>>& to);
  // What everybody says, by rank; errors as TryExchange.
  absl::StatusOr<std::vector<std::string>> Gather(const absl::StatusOr<std::string>& own);
  // What worker 0 says.
  absl::StatusOr<std::string> FromLeader(const std::string& own);
  // OK if all say OK; else an error, as Gather.
  absl::Status Agree(const absl::Status& own);
  // `work` is done by worker 0 alone; the others wait for its end.
  absl::Status Lead(const std::function<absl::Status()>& work);

  // One more group of the same workers.
  absl::StatusOr<std::unique_ptr<ProcessGroup>> Another();
  // For the steps on `device`: NCCL between GPUs, the host's network where a GPU has none.
  absl::StatusOr<std::unique_ptr<Communicator>> OnDevice(DeviceContext& device);

  // Tells the others why this worker does not go on.
  void GiveUp(const absl::Status& why) { peers_->GiveUp(why); }
  // The same from any thread.
  void Interrupt(const absl::Status& why) { peers_->Interrupt(why); }

 private:
  ProcessGroup(GroupPlace place, std::unique_ptr<Communicator> peers)
      : place_(std::move(place)), peers_(std::move(peers)) {}
  // A group beside this one, at a port that worker 0 opens for it.
  absl::StatusOr<GroupOptions> NextGroup();

  const GroupPlace place_;
  const std::unique_ptr<Communicator> peers_;
  Stream host_;  // of peers_
};

// The sum of what the workers say.
absl::StatusOr<uint64_t> SumOver(ProcessGroup& group, uint64_t own);

// The same for a worker that may be alone (group is null).
inline absl::Status Lead(ProcessGroup* group, const std::function<absl::Status()>& work) {
  return group == nullptr ? work() : group->Lead(work);
}
inline absl::Status Agree(ProcessGroup* group, const absl::Status& own) {
  return group == nullptr ? own : group->Agree(own);
}

}  // namespace cistern
