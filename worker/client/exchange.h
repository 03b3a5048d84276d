// Runs many data-plane calls at once: several in flight per server, failed calls retried until the
// retry limit, replies delivered as they arrive.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/wire/planes.h"

namespace cistern {

// How errors name a server: "server 1 (127.0.0.1:7701)".
std::string ServerName(size_t rank, const ServerLink& link);

struct ExchangePolicy {
  absl::Duration call_timeout, retry_limit;
  int in_flight = 4;  // per server
  // Threads that pack requests, and run the calls of an embedded server; the caller is one of them.
  int senders = 1;
};

// The requests and replies of one exchange.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual FrameKind kind() const = 0;
  virtual size_t call_num() const = 0;
  // Rank of the server that receives call `i`.
  virtual size_t server(size_t i) const = 0;
  // The frame of call `i`. A retry asks for it again, and must get the same bytes. Runs
  // concurrently for several calls, on the senders' threads.
  virtual Frame Request(size_t i) const = 0;
  // Takes the reply of call `i`, exactly once per call. Runs concurrently on several threads and
  // must not block.
  virtual absl::Status Reply(size_t i, const FrameHeader& header, FrameReader& body) = 0;
};

// Runs all calls of `transfer`; on return none is in flight. The first error that is not retryable
// ends the exchange and is returned with the server's name. An error that outlasts the retry limit
// also gives the time spent. outages: receives the text (outage.h) of each outage of a server that
// lasted a second or longer; may be null.
//
// Threads: any, several exchanges at a time.
absl::Status RunExchange(absl::Span<const ServerLink> servers, const ExchangePolicy& policy,
                         Transfer& transfer, std::vector<std::string>* outages = nullptr);

}  // namespace cistern
