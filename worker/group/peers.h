// Connections between all ranks of a process group. Their only operation is an exchange: every rank
// sends a message to every other rank and receives one from it, at the same time.
//
// A message header carries the number, kind and size of its call, which detects ranks that are out
// of step. Nothing is retried: after the first error a rank sends that error to the others, and
// every later call returns it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "worker/group/group_options.h"
#include "worker/group/reception.h"

namespace cistern::group {

// Identifies a call; the same on every rank.
struct CallShape {
  const char* name = "";  // at most 15 characters
  uint64_t elements = 0;  // or any other number on which all ranks must agree
  uint32_t kind = 0;      // the element type, or the root
};

struct SentPart {
  const void* data = nullptr;
  size_t bytes = 0;
};
struct ReceivedPart {
  void* data = nullptr;
  size_t bytes = 0;
};

// Threads: one at a time; Interrupt from any.
class Peers {
 public:
  // Waits until all ranks have joined. kInvalidArgument for an invalid group, or if its processes
  // disagree about size and ranks; kUnavailable or kDeadlineExceeded names the missing ranks.
  // Connections without the group secret have no effect.
  static absl::StatusOr<std::unique_ptr<Peers>> Connect(GroupOptions group);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(others_.size()); }

  // Ends the group: ranks that wait for this one receive `why`, and every later call returns it.
  // The code is kUnavailable, unless a restart of the group cannot fix the cause.
  void Abort(const absl::Status& why);
  // The same from any thread: the waiting call, or the next one, ends with `why`.
  void Interrupt(const absl::Status& why);

  // send: the message to each rank; receive: the buffer for the message from each; both [size],
  // this rank's own entry is ignored. Errors name the rank and its last observed state:
  //   kUnavailable         its connection is closed
  //   the code of Abort   it has given up (with its reason)
  //   kDeadlineExceeded    it has not reached this call, or stopped during it
  //   kFailedPrecondition  it is in another call, or in one of another size
  absl::Status Exchange(const CallShape& call, absl::Span<const SentPart> send,
                        absl::Span<const ReceivedPart> receive);

 private:
  struct Header;
  struct Transfer;
  // Another rank; the entry of this rank has no connection.
  struct Other {
    Socket socket;
    std::string name;   // "worker 2 (10.0.0.3)"
    uint16_t port = 0;  // where it listens
  };

  Peers(int rank, int size, std::chrono::milliseconds deadline);

  // The rendezvous (peers_connect.cc).
  absl::Status Gather(const GroupOptions& group, Deadline deadline);
  absl::Status Join(const GroupOptions& group, Deadline deadline);
  // Welcomes ranks until none is missing; logs the connections that were dropped.
  absl::Status WelcomeAll(const GroupOptions& group, const Listener& listener, uint64_t secret,
                          Deadline deadline);
  absl::Status Welcome(Reception::Guest guest);
  std::string Missing() const;
  void Take(int rank, Socket socket);

  // Sends and receives until all transfers are done or the deadline passes.
  void Carry(const CallShape& call, absl::Span<Transfer> transfers);
  absl::Status Outcome(const CallShape& call, absl::Span<const Transfer> transfers) const;
  // As send(2).
  static ssize_t SendSome(const Socket& socket, Transfer* transfer);
  void Send(int rank, Transfer* transfer);
  void Receive(int rank, const CallShape& call, Transfer* transfer);
  absl::Status CheckHeader(int rank, const CallShape& call, const Header& own,
                           Transfer* transfer) const;
  // Ends the group: sends the error to all ranks that can still receive it, and closes all
  // connections.
  void Abort(const absl::Status& status, absl::Span<const Transfer> transfers);

  const int rank_;
  const std::chrono::milliseconds deadline_;
  std::vector<Other> others_;  // by rank
  uint64_t calls_ = 0;
  absl::Status status_;

  absl::Status Interruption() const;
  mutable absl::Mutex mutex_;
  absl::Status interruption_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern::group
