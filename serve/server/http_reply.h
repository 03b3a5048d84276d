// A reply of the HTTP protocol, before the library sends it.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "serve/server/http_route.h"
#include "serve/server/inference_core.h"
#include "serve/server/json_reply.h"

namespace cistern::serve {

struct HttpReply {
  int status = 200;
  std::string body;
  const char* content_type = "application/json";
  std::optional<size_t> json_bytes;  // Inference-Header-Content-Length
  const char* allow = nullptr;       // Allow
  bool retry = false;                // Retry-After: 1
  bool close = false;                // Connection: close
};

// The HTTP status of an error: 400 for kInvalidArgument, 404 kNotFound, 503 kResourceExhausted and
// kUnavailable (with Retry-After), 504 kDeadlineExceeded, 403 kPermissionDenied, else 500.
HttpReply ErrorReply(const absl::Status& status);

// The reply to an infer request.
HttpReply ReplyOf(const absl::StatusOr<InferReply>& reply);

// The reply to a route other than kInfer.
HttpReply Answer(const HttpRoute& route, const InferenceCore& core);

// How a route counts in the metrics.
ServeMethod MethodOf(HttpRoute::Kind kind);
// The outcome under which a reply counts.
absl::Status OutcomeOf(const HttpReply& reply);

}  // namespace cistern::serve
