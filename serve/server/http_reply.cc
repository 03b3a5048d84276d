#include "serve/server/http_reply.h"

#include <utility>

namespace cistern::serve {
namespace {

using Kind = HttpRoute::Kind;

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpReply JsonOf(std::string body) {
  HttpReply reply;
  reply.body = std::move(body);
  return reply;
}

HttpReply Health(const absl::Status& healthy) {
  HttpReply reply = JsonOf(healthy.ok() ? "{}" : ErrorJson(healthy.message()));
  reply.status = healthy.ok() ? 200 : 503;
  return reply;
}

// The header Allow of a route.
const char* AllowOf(const HttpRoute& route) {
  const absl::string_view allowed = route.allowed;
  return allowed == "POST" ? "POST" : allowed == "GET" ? "GET, HEAD" : "GET, HEAD, POST, OPTIONS";
}

}  // namespace

HttpReply ErrorReply(const absl::Status& status) {
  HttpReply reply = JsonOf(ErrorJson(status.message()));
  reply.status = HttpStatusOf(status.code());
  reply.retry = reply.status == 503;
  return reply;
}

HttpReply ReplyOf(const absl::StatusOr<InferReply>& reply) {
  if (!reply.ok()) return ErrorReply(reply.status());
  JsonReply encoded = EncodeJsonReply(*reply);
  HttpReply answer = JsonOf(std::move(encoded.body));
  answer.json_bytes = encoded.json_bytes;
  if (encoded.json_bytes.has_value()) answer.content_type = "application/octet-stream";
  return answer;
}

HttpReply Answer(const HttpRoute& route, const InferenceCore& core) {
  switch (route.kind) {
    case Kind::kServerMetadata:
      return JsonOf(ServerMetadataJson(DescribeServer({"binary_tensor_data"})));
    case Kind::kLive:
      return Health(absl::OkStatus());
    case Kind::kReady:
      return Health(core.CheckReady());
    case Kind::kMetrics: {
      HttpReply reply = JsonOf(core.MetricsText());
      reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
      return reply;
    }
    case Kind::kModelMetadata:
    case Kind::kModelReady:
    case Kind::kModelConfig: {
      const absl::Status found = core.CheckModel(route.model, route.version);
      if (!found.ok()) return ErrorReply(found);
      if (route.kind == Kind::kModelReady) return Health(core.CheckReady());
      return JsonOf(route.kind == Kind::kModelConfig ? ModelConfigJson(core.Model())
                                                     : ModelMetadataJson(core.Model()));
    }
    case Kind::kWrongMethod: {
      HttpReply reply =
          JsonOf(ErrorJson(absl::StrCat("this path takes the method ", route.allowed)));
      reply.status = 405;
      reply.allow = AllowOf(route);
      return reply;
    }
    case Kind::kOptions: {
      HttpReply reply;
      reply.status = 204;
      reply.allow = AllowOf(route);
      return reply;
    }
    case Kind::kInfer:
    case Kind::kUnknown:
      break;
  }
  return ErrorReply(absl::NotFoundError(
      "no such path; there are /v2, /v2/health/live, /v2/health/ready, /v2/models/NAME, "
      "/v2/models/NAME/ready, /v2/models/NAME/config, /v2/models/NAME/infer and /metrics"));
}

ServeMethod MethodOf(HttpRoute::Kind kind) {
  switch (kind) {
    case Kind::kInfer:
      return ServeMethod::kInfer;
    case Kind::kLive:
    case Kind::kReady:
    case Kind::kModelReady:
      return ServeMethod::kHealth;
    case Kind::kServerMetadata:
    case Kind::kModelMetadata:
    case Kind::kModelConfig:
      return ServeMethod::kMetadata;
    case Kind::kMetrics:
      return ServeMethod::kMetrics;
    default:
      return ServeMethod::kOther;
  }
}

absl::Status OutcomeOf(const HttpReply& reply) {
  switch (reply.status) {
    case 200:
    case 204:
      return absl::OkStatus();
    case 404:
      return absl::NotFoundError("");
    case 403:
      return absl::PermissionDeniedError("");
    case 503:
      return absl::UnavailableError("");
    case 504:
      return absl::DeadlineExceededError("");
    case 500:
      return absl::InternalError("");
    default:
      return absl::InvalidArgumentError("");
  }
}

}  // namespace cistern::serve
