// Connects a channel before a call, because gRPC can mistake a connection in progress for a
// failure.
#pragma once

#include <grpcpp/create_channel.h>

#include <string>

#include "absl/time/time.h"

namespace cistern {

// Returns once `channel` is connected, or cannot connect to its server at `address` (host:port), or
// `deadline` has passed. A call that follows reports which.
//
// gRPC reads the errno of connect() only after it has locked mutexes and allocated memory. An errno
// that these leave behind (ENOENT, for example, from a file of /sys that a container lacks) fails
// the attempt. So after a failed attempt this function connects a socket of its own. If that works,
// the failure was false, and the channel gets another attempt.
void ConnectChannel(grpc::Channel& channel, const std::string& address, absl::Time deadline);

}  // namespace cistern
