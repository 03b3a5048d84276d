// Sockets of this machine.
#pragma once

#include "absl/time/time.h"

namespace cistern {

// Listens on a free loopback port, which goes into `port`; -1 without one.
int ListenOnLoopback(int* port);

// Connects to a loopback port; reads and writes fail after `limit`. -1 if nobody listens.
int ConnectToLoopback(int port, absl::Duration limit);

}  // namespace cistern
