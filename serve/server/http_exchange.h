// A request over HTTP and its reply, in the library's terms.
#pragma once

#include <microhttpd.h>

#include <atomic>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/rpc/connection_book.h"
#include "serve/server/http_reply.h"
#include "serve/server/serve_limits.h"

namespace cistern::serve {

inline constexpr char kJsonBytesHeader[] = "Inference-Header-Content-Length";

// Threads: the library's thread; between the queue's acceptance and `replied`, the queue's thread.
struct Exchange {
  absl::Time arrived = absl::Now();
  HttpRoute route;
  std::string body;
  uint64_t received = 0;  // bytes of the body, also of one that is dropped
  std::optional<size_t> json_bytes;
  absl::Status refused;    // what is wrong with the headers, or the length of the body
  int refused_status = 0;  // 0: the status that belongs to the code
  bool close = false;      // the connection ends with the reply
  bool unread = false;     // the body is not read
  ConnectionBook::Call held;
  bool complete = false;  // the body is here
  bool arriving = false;  // counted in `arriving_`
  bool flying = false;    // counted in `flying_`
  HttpReply reply;
  std::atomic<bool> replied{false};  // `reply` is set
};

// A header of the request; null if it is not there.
const char* Header(MHD_Connection* connection, const char* name);
// A header that is a number of bytes; nullopt if it is not there, kInvalidArgument if it is no
// number, or repeated.
absl::StatusOr<std::optional<size_t>> SizeHeader(MHD_Connection* connection, const char* name);

// The bytes of the header lines, without the request line.
size_t FieldBytes(MHD_Connection* connection);

// kInvalidArgument if the name of a header is not a token (RFC 9112, 5.1). The library takes
// "Content-Length :" for a header of another name, and the body for a second request.
absl::Status CheckFieldNames(MHD_Connection* connection);

// kInvalidArgument unless a request of HTTP/1.1 has one header Host, and it is a host with or
// without a port (RFC 9112, 3.2).
absl::Status CheckHost(MHD_Connection* connection, absl::string_view version);

// kInvalidArgument if the headers do not say where the request ends, or say it twice: a proxy may
// have read another end than this server. The library itself answers a Content-Length that is not a
// number, before it calls anybody, with 400 and the end of the connection; before its version 1.0
// it sends a second head in that answer's body.
absl::Status CheckFraming(MHD_Connection* connection);

// Gives the reply to the library, which copies it.
MHD_Result QueueReply(MHD_Connection* connection, const HttpReply& reply);

// For MHD_OPTION_NOTIFY_CONNECTION: notes when a connection that begins will be too old.
// limits: ServeLimits.
void NoteAge(void* limits, MHD_Connection* connection, void** context,
             MHD_ConnectionNotificationCode what);
bool IsTooOld(MHD_Connection* connection);

// Whether the peer has shown a certificate of the authority that the daemon trusts.
bool ShowsCertificate(MHD_Connection* connection);

}  // namespace cistern::serve
