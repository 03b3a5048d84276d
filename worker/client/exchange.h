// Many data-plane calls at once: several in flight per server, failed ones repeated until the retry
// limit, replies handed over as they come.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/wire/planes.h"

namespace cistern {

// "server 1 (127.0.0.1:7701)": how errors name a server.
std::string ServerName(size_t rank, const ServerLink& link);

struct ExchangePolicy {
  absl::Duration call_timeout, retry_limit;
  int in_flight = 4;  // per server
};

// What an exchange sends and receives.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual FrameKind kind() const = 0;
  virtual size_t call_num() const = 0;
  // Rank of the server that call `i` goes to.
  virtual size_t server(size_t i) const = 0;
  // The frame of call `i`; asked for again, on the calling thread, when the call is repeated: the
  // bytes must be the same.
  virtual Frame Request(size_t i) const = 0;
  // Takes the reply of call `i`, exactly once. Calls may overlap on several threads; must not
  // block.
  virtual absl::Status Reply(size_t i, const FrameHeader& header, FrameReader& body) = 0;
};

// Runs all calls of `transfer`; on return none is in flight. The first error ends the exchange and
// is returned with its server's name. One that outlasts the retry limit says how long was tried.
//
// Threads: any, several exchanges at a time.
absl::Status RunExchange(absl::Span<const ServerLink> servers, const ExchangePolicy& policy,
                         Transfer& transfer);

}  // namespace cistern
