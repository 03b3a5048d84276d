// The paths of the HTTP protocol.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace cistern::serve {

// What a request asks for.
struct HttpRoute {
  enum class Kind {
    kUnknown,         // 404
    kWrongMethod,     // 405; `allowed` says which method it takes
    kOptions,         // OPTIONS of a path, which `allowed` belongs to, or of the server ("*")
    kServerMetadata,  // GET /v2
    kLive,            // GET /v2/health/live
    kReady,           // GET /v2/health/ready
    kModelMetadata,   // GET /v2/models/NAME[/versions/V]
    kModelReady,      // GET /v2/models/NAME[/versions/V]/ready
    kModelConfig,     // GET /v2/models/NAME[/versions/V]/config
    kInfer,           // POST /v2/models/NAME[/versions/V]/infer
    kMetrics,         // GET /metrics
  };
  Kind kind = Kind::kUnknown;
  std::string model, version;
  const char* allowed = "";
};

// method: "GET" ...; HEAD counts as GET. path: decoded, without the query; also with scheme and
// authority before it, as proxies send it (RFC 9112, 3.2.2).
HttpRoute RouteOf(absl::string_view method, absl::string_view path);

}  // namespace cistern::serve
