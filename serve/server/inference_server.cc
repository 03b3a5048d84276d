#include "serve/server/inference_server.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/machine_limits.h"
#include "common/tls/tls_renewal.h"
#include "serve/server/grpc_host.h"
#include "serve/server/http_host.h"
#include "serve/server/inference_core.h"

namespace cistern::serve {
namespace {

constexpr size_t kInFlightPerThread = 64;
constexpr char kTlsCa[] = "tls_client_ca";

absl::StatusOr<ListeningSockets> Listen(const std::string& bind, int port,
                                        const std::string& option) {
  if (port < 0 || port > 65535) {
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat("port ", port, " is not in 0 to 65535")), {option});
  }
  absl::StatusOr<ListeningSockets> sockets = ListeningSockets::Open(bind, port);
  if (sockets.ok() || OptionsOf(sockets.status()) == std::vector<std::string>{"bind"}) {
    return sockets;
  }
  return WithOptions(sockets.status(), {option});
}

}  // namespace

struct InferenceServer::Parts {
  std::unique_ptr<InferenceCore> core;
  std::unique_ptr<HttpHost> http;
  std::unique_ptr<GrpcHost> grpc;
  std::unique_ptr<TlsRenewal> renewal;  // destroyed first: it uses the members above; null: no TLS
  bool bodies_awaited = false;          // by a first Stop

  // Both protocols use the new certificates, or neither.
  absl::Status Renew(const TlsPem& tls) const {
    CISTERN_RETURN_IF_ERROR(CheckPair(tls));
    if (http != nullptr) CISTERN_RETURN_IF_ERROR(http->Renew(tls));
    if (grpc != nullptr) grpc->Renew(tls);
    return absl::OkStatus();
  }
};

InferenceServer::InferenceServer() : parts_(std::make_unique<Parts>()) {}

InferenceServer::~InferenceServer() {
  Stop(absl::InfiniteDuration());
}

absl::StatusOr<std::unique_ptr<InferenceServer>> InferenceServer::Start(
    Predictor& predictor, const InferenceServerOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<InferenceServer> server, Start(options));
  server->Serve(predictor);
  return server;
}

absl::StatusOr<std::unique_ptr<InferenceServer>> InferenceServer::Start(
    const InferenceServerOptions& options) {
  if (options.http_port == kNoPort && options.grpc_port == kNoPort) {
    return absl::InvalidArgumentError("neither HTTP nor gRPC has a port; give one of them");
  }
  CISTERN_ASSIGN_OR_RETURN(const TlsPem tls, ReadTls(options.tls, kTlsCa));
  std::unique_ptr<RequestLog> log;
  if (!options.log.path.empty()) {
    CISTERN_ASSIGN_OR_RETURN(log, RequestLog::Open(options.log));
  }
  const int cores = CoreCount();
  const int threads = options.threads > 0 ? options.threads : cores;
  const size_t max_in_flight =
      options.max_in_flight > 0 ? options.max_in_flight : kInFlightPerThread * threads;

  auto server = std::unique_ptr<InferenceServer>(new InferenceServer);
  Parts& parts = *server->parts_;
  parts.core =
      std::make_unique<InferenceCore>(threads, max_in_flight, std::move(log), options.stopping);
  if (options.http_port != kNoPort) {
    CISTERN_ASSIGN_OR_RETURN(ListeningSockets sockets,
                             Listen(options.bind, options.http_port, "port"));
    CISTERN_ASSIGN_OR_RETURN(
        parts.http, HttpHost::Start(std::move(sockets), tls, options.limits, parts.core.get()));
  }
  if (options.grpc_port != kNoPort) {
    CISTERN_ASSIGN_OR_RETURN(ListeningSockets sockets,
                             Listen(options.bind, options.grpc_port, "grpc_port"));
    CISTERN_ASSIGN_OR_RETURN(
        parts.grpc, GrpcHost::Start(std::move(sockets), tls, options.limits, parts.core.get()));
  }
  if (tls.on()) {
    parts.renewal = std::make_unique<TlsRenewal>(
        options.tls.cert, [files = options.tls] { return ReadTls(files, kTlsCa); }, tls,
        [&parts](const TlsPem& renewed) { return parts.Renew(renewed); },
        [metrics = &parts.core->metrics()](TlsRenewal::Outcome outcome) {
          if (outcome == TlsRenewal::Outcome::kRenewed) return metrics->CountCertificates();
          metrics->SetCertificatesFailing(outcome == TlsRenewal::Outcome::kFailing);
        });
  }
  return server;
}

void InferenceServer::Serve(Predictor& predictor) {
  parts_->core->Serve(predictor);
  if (parts_->grpc != nullptr) parts_->grpc->SetServing(true);
}

void InferenceServer::CountFirstOpen(bool opened) {
  parts_->core->metrics().CountFirstOpen(opened);
}

void InferenceServer::BeginDrain() {
  // Connections are to be closed before a balancer turns away, so that it keeps none that is idle.
  if (parts_->http != nullptr) parts_->http->BeginDrain();
  parts_->core->BeginDrain();
  if (parts_->grpc != nullptr) parts_->grpc->SetServing(false);
}

int InferenceServer::http_port() const {
  return parts_->http == nullptr ? kNoPort : parts_->http->port();
}
int InferenceServer::grpc_port() const {
  return parts_->grpc == nullptr ? kNoPort : parts_->grpc->port();
}
int InferenceServer::threads() const {
  return parts_->core->queue().thread_num();
}

bool InferenceServer::Stop(absl::Duration grace) {
  Parts& parts = *parts_;
  if (parts.core == nullptr) return true;
  const absl::Time deadline = absl::Now() + grace;
  parts.renewal = nullptr;
  if (parts.http != nullptr) parts.http->StopAccepting();
  if (parts.grpc != nullptr) parts.grpc->StopAccepting();
  if (parts.http != nullptr && !std::exchange(parts.bodies_awaited, true)) {
    // A caller that stalls in the middle of its request delays the stop by this.
    parts.http->AwaitBodies(std::min(absl::Seconds(5), grace / 2));
  }
  if (!parts.core->Drain(grace)) return false;
  // What is left is to send the replies, and peers that do not read theirs get a second for it.
  const absl::Duration left = std::min(absl::Seconds(1), deadline - absl::Now());
  if (parts.http != nullptr) parts.http->AwaitReplies(left);
  if (parts.grpc != nullptr) parts.grpc->Stop(std::max(absl::ZeroDuration(), left));
  return true;
}

}  // namespace cistern::serve
