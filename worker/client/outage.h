// Outages of servers that a client bridged by repeating its calls: nothing was lost, but the time
// was, so the log of a training names them.
#pragma once

#include <string>
#include <vector>

#include "worker/client/exchange.h"

namespace cistern {

// Shorter ones are not worth a line.
inline constexpr absl::Duration kOutage = absl::Seconds(1);

// "server 1 (127.0.0.1:7701) did not answer for 2.1s"
std::string OutageText(size_t rank, const ServerLink& link, absl::Duration time);

}  // namespace cistern
