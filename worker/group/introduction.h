// How a process of a group introduces itself to one of a lower rank, and what that one answers.
#pragma once

#include <string>

#include "worker/group/group_options.h"
#include "worker/group/hello.h"

namespace cistern {

// What follows the hello, from the process that was introduced to.
enum class Answer : char {
  kWelcome = 'T',  // by rank 0 once all have come, with the table of places; by others at once
  kRefused = 'E',  // with the reason
  kFailed = 'U',   // the same, but another try may do better
};
absl::Status SendAnswer(const Socket& socket, Answer answer, const std::string& text,
                        Deadline deadline);

struct Introduced {
  Socket socket;
  std::string text;     // of the welcome
  uint64_t secret = 0;  // the one that was right
};

// Connects to `there`, says hello as a process of `group` that listens at `port`, and waits for the
// welcome. Where the connection is closed without an answer, the secret is another by now (rank 0
// was started again), or a flood has pushed this process out: it tries again, with the secret
// asked for anew.
//
// kInvalidArgument: refused. kUnavailable or kDeadlineExceeded, with what happened last: no welcome
// before the deadline. kFailedPrecondition: another program answers there. kCancelled: interrupted.
absl::StatusOr<Introduced> Introduce(const GroupOptions& group, const GroupSecret& secret,
                                     const HostAndPort& there, uint16_t port, Deadline deadline);

}  // namespace cistern
