// The process group of a run: the workers that train one model, and their messages between steps.
// The sums and exchanges inside a step use a Communicator (cuda/collective).
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

namespace cistern::group {

// A worker's rank, and the rendezvous of the run's workers.
struct GroupPlace {
  uint32_t rank = 0, size = 1;
  std::string address;  // "host:port" where worker 0 listens
  GroupSecret secret;   // the run secret (training_group.h); groups made by Another draw their own
  TlsFiles tls = {};    // certificates of the workers; none: plain text
  std::string cluster = "cistern";  // of which each must be a worker, by its certificate
  // Set by a signal handler: ends the rendezvous (kCancelled). May be null.
  const std::atomic<bool>* interrupted = nullptr;
};

// All workers make the same calls in the same order. An error names the worker at fault and ends
// the group; recovery forms a new group. The end of a worker's process is noticed at once; a live
// worker that is late is waited for.
//
// Threads: one at a time; a second thread needs a second group of the same workers (Another).
class ProcessGroup {
 public:
  static constexpr uint64_t kMaxMessageBytes = uint64_t{16} << 30;

  // Waits until all workers have joined. kInvalidArgument: an invalid rank, size or address, or
  // certificates that cannot be used; kPermissionDenied: this worker's certificate has not the
  // role, or another worker does not accept it; kUnavailable, kDeadlineExceeded: names the missing
  // workers.
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Form(const GroupPlace& place,
                                                            std::chrono::milliseconds limit);

  uint32_t rank() const { return static_cast<uint32_t>(peers_->rank()); }
  uint32_t size() const { return static_cast<uint32_t>(peers_->size()); }
  bool leads() const { return rank() == 0; }

  // Sends to[r] to worker r and returns the message from each worker; both [size], this worker's
  // own message included. A message has at most kMaxMessageBytes. kInternal if a worker announces a
  // longer one, kResourceExhausted if this machine lacks the memory.
  absl::StatusOr<std::vector<std::string>> Exchange(const std::vector<std::string>& to);
  // The same for workers that may have failed. If any passes an error, every call fails: a failed
  // worker returns its own error, the others that of the lowest failed rank, with its name.
  absl::StatusOr<std::vector<std::string>> TryExchange(
      const absl::StatusOr<std::vector<std::string>>& to);
  // All-gather: returns every worker's `own`, by rank; errors as TryExchange.
  absl::StatusOr<std::vector<std::string>> Gather(const absl::StatusOr<std::string>& own);
  // Broadcast: returns worker 0's `own`.
  absl::StatusOr<std::string> FromLeader(const std::string& own);
  // OK if every worker passes OK; else an error, as Gather.
  absl::Status Agree(const absl::Status& own);
  // Runs `work` on worker 0 alone, while the others wait; all return its status.
  absl::Status Lead(const std::function<absl::Status()>& work);

  // Creates a second group of the same workers.
  absl::StatusOr<std::unique_ptr<ProcessGroup>> Another();
  // The communicator for steps on `device`: NCCL between GPUs, or the host's network without NCCL.
  absl::StatusOr<std::unique_ptr<Communicator>> OnDevice(DeviceContext& device);

  // Ends the group and sends the reason to the other workers.
  void Abort(const absl::Status& why) { peers_->Abort(why); }
  // The same from any thread.
  void Interrupt(const absl::Status& why) { peers_->Interrupt(why); }

 private:
  ProcessGroup(GroupPlace place, std::shared_ptr<const SecureContext> tls,
               std::unique_ptr<Communicator> peers)
      : place_(std::move(place)), tls_(std::move(tls)), peers_(std::move(peers)) {}
  // The options of a second group, at a port that worker 0 opens for it.
  absl::StatusOr<GroupOptions> NextGroup();

  const GroupPlace place_;
  const std::shared_ptr<const SecureContext> tls_;  // null: plain text
  const std::unique_ptr<Communicator> peers_;
  Stream host_;  // used by peers_
};

// The sum of `own` over all workers.
absl::StatusOr<uint64_t> SumOver(ProcessGroup& group, uint64_t own);

// ProcessGroup::Lead and Agree for a run that may have a single worker (group is null).
inline absl::Status Lead(ProcessGroup* group, const std::function<absl::Status()>& work) {
  return group == nullptr ? work() : group->Lead(work);
}
inline absl::Status Agree(ProcessGroup* group, const absl::Status& own) {
  return group == nullptr ? own : group->Agree(own);
}

}  // namespace cistern::group
