// The handshake by which a rank introduces itself to a lower rank: a hello and its answer.
#pragma once

#include <string>

#include "worker/group/group_options.h"
#include "worker/group/hello.h"

namespace cistern::group {

// The lower rank's answer to a hello.
enum class Answer : char {
  kWelcome =
      'T',  // rank 0 sends it with the address table once all ranks have joined, others at once
  kRefused = 'E',  // with the reason
  kFailed = 'U',   // with the reason; a retry may succeed
};
absl::Status SendAnswer(const Socket& socket, Answer answer, const std::string& text,
                        Deadline deadline);

struct Introduced {
  Socket socket;
  std::string text;     // the text of the welcome
  uint64_t secret = 0;  // the secret that was accepted
};

// Connects to `there`, sends the hello of a rank of `group` that listens at `port`, and waits for
// the welcome. A connection that closes without an answer means that the secret has changed (rank 0
// was restarted), or that a flood of connections displaced this one: Introduce fetches the secret
// again and retries.
//
// kInvalidArgument: refused. kUnavailable or kDeadlineExceeded, with the last error: no welcome
// before the deadline. kFailedPrecondition: another program answers there. kCancelled: interrupted.
absl::StatusOr<Introduced> Introduce(const GroupOptions& group, const GroupSecret& secret,
                                     const HostPort& there, uint16_t port, Deadline deadline);

}  // namespace cistern::group
