#include "serve/server/http_route.h"

#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/http/request_target.h"

namespace cistern::serve {
namespace {

using Kind = HttpRoute::Kind;

// parts: what follows /v2/models.
HttpRoute ModelRoute(absl::Span<const absl::string_view> parts) {
  HttpRoute route;
  if (parts.empty() || parts[0].empty()) return route;
  route.model = std::string(parts[0]);
  parts.remove_prefix(1);
  if (parts.size() >= 2 && parts[0] == "versions") {
    route.version = std::string(parts[1]);
    parts.remove_prefix(2);
  }
  if (parts.empty()) {
    route.kind = Kind::kModelMetadata;
  } else if (parts.size() > 1) {
    route.kind = Kind::kUnknown;
  } else if (parts[0] == "ready") {
    route.kind = Kind::kModelReady;
  } else if (parts[0] == "config") {
    route.kind = Kind::kModelConfig;
  } else if (parts[0] == "infer") {
    route.kind = Kind::kInfer;
  }
  return route;
}

HttpRoute PathRoute(absl::string_view path) {
  absl::ConsumeSuffix(&path, "/");
  HttpRoute route;
  if (path == "/v2") {
    route.kind = Kind::kServerMetadata;
  } else if (path == "/v2/health/live") {
    route.kind = Kind::kLive;
  } else if (path == "/v2/health/ready") {
    route.kind = Kind::kReady;
  } else if (path == "/metrics") {
    route.kind = Kind::kMetrics;
  } else if (absl::ConsumePrefix(&path, "/v2/models/")) {
    const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
    return ModelRoute(parts);
  }
  return route;
}

}  // namespace

HttpRoute RouteOf(absl::string_view method, absl::string_view path) {
  if (method == "OPTIONS" && path == "*") {
    HttpRoute whole;
    whole.kind = Kind::kOptions;
    whole.allowed = "";
    return whole;
  }
  HttpRoute route = PathRoute(WithoutAuthority(path));
  if (route.kind == Kind::kUnknown) return route;
  const bool is_infer = route.kind == Kind::kInfer;
  const bool get = method == "GET" || method == "HEAD";
  route.allowed = is_infer ? "POST" : "GET";
  if (method == "OPTIONS") {
    route.kind = Kind::kOptions;
  } else if (is_infer ? method != "POST" : !get) {
    route.kind = Kind::kWrongMethod;
  }
  return route;
}

}  // namespace cistern::serve
