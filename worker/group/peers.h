// Connections between all processes of a group, and the one thing they are used for: every process
// sends something to every other and receives something from it, at the same time.
//
// A message says which call of which kind it belongs to and how much that call is about, so
// processes that are out of step find out. Nothing is tried twice: after the first error a process
// tells the others what it was, and every later call answers with it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "worker/group/group_options.h"
#include "worker/group/reception.h"

namespace cistern {

// What a call is, the same in every process of the group.
struct CallShape {
  const char* name = "";  // at most 15 characters
  uint64_t elements = 0;  // or whatever must be the same everywhere
  uint32_t kind = 0;      // of elements; a root
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
  // Waits until all have come. kInvalidArgument for a group that cannot be, or whose processes
  // disagree about its size and ranks; kUnavailable or kDeadlineExceeded with the ranks that are
  // missing. Connections without the group's secret change nothing.
  static absl::StatusOr<std::unique_ptr<Peers>> Connect(GroupOptions group);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(others_.size()); }

  // Ends the group: those who wait for this process hear why, and so does every later call. code:
  // kUnavailable unless the reason is one that going on elsewhere does not mend.
  void GiveUp(const absl::Status& why);
  // The same from any thread: a call that waits, or the next one, ends with `why`.
  void Interrupt(const absl::Status& why);

  // send: what each rank gets; receive: what comes from each; [size], the own place is not looked
  // at. Errors name the rank, and what it was last seen to do:
  //   kUnavailable         its connection is gone
  //   the code of GiveUp   it has given up (with its reason)
  //   kDeadlineExceeded    it has not come to this call, or stopped in it
  //   kFailedPrecondition  it is in another call, or in one of another size
  absl::Status Exchange(const CallShape& call, absl::Span<const SentPart> send,
                        absl::Span<const ReceivedPart> receive);

 private:
  struct Header;
  struct Transfer;
  // Another process; the own place has no connection.
  struct Other {
    Socket socket;
    std::string name;   // "worker 2 (10.0.0.3)"
    uint16_t port = 0;  // where it listens
  };

  Peers(int rank, int size, std::chrono::milliseconds deadline);

  // How the group finds each other (peers_connect.cc).
  absl::Status Gather(const GroupOptions& group, Deadline deadline);
  absl::Status Join(const GroupOptions& group, Deadline deadline);
  // Until nobody is missing; a line in the log says who was dropped.
  absl::Status WelcomeAll(const GroupOptions& group, const Listener& listener, uint64_t secret,
                          Deadline deadline);
  absl::Status Welcome(Reception::Guest guest);
  std::string Missing() const;
  void Take(int rank, Socket socket);

  // Sends and receives until all is done, or the deadline is there.
  void Carry(const CallShape& call, absl::Span<Transfer> transfers);
  absl::Status Outcome(const CallShape& call, absl::Span<const Transfer> transfers) const;
  void Send(int rank, Transfer* transfer);
  void Receive(int rank, const CallShape& call, Transfer* transfer);
  absl::Status CheckHeader(int rank, const CallShape& call, const Header& own,
                           Transfer* transfer) const;
  // Ends the group: tells those that can be told, and closes all connections.
  void GiveUp(const absl::Status& status, absl::Span<const Transfer> transfers);

  const int rank_;
  const std::chrono::milliseconds deadline_;
  std::vector<Other> others_;  // by rank
  uint64_t calls_ = 0;
  absl::Status status_;

  absl::Status Interruption() const;
  mutable absl::Mutex mutex_;
  absl::Status interruption_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cistern
