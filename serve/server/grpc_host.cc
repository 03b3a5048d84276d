#include "serve/server/grpc_host.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <malloc.h>

#include <utility>

#include "common/rpc/connection_acceptor.h"
#include "common/rpc/connection_book.h"
#include "common/rpc/connection_limits.h"
#include "common/rpc/grpc_convert.h"
#include "common/rpc/server_credentials.h"
#include "serve/server/grpc_service.h"

namespace cistern::serve {
namespace {

constexpr int kMaxStreams = 256;  // concurrent calls of a connection
// How long a connection may hold a large incomplete message without progress.
constexpr absl::Duration kStall = absl::Seconds(10);
// How long the calls of a connection that is too old may take to end.
constexpr int kAgeGraceMs = 60'000;

}  // namespace

struct GrpcHost::Parts {
  Parts(const ServeLimits& limits, bool encrypted, InferenceCore* core)
      : book(limits.memory_bytes, kStall, kMaxStreams, encrypted), service(core, &book) {}

  ConnectionBook book;
  GrpcService service;
  OtherMethods other_methods;
  std::shared_ptr<RenewedCredentials> tls;  // null: none
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<ConnectionAcceptor> acceptor;
  int port = 0;
};

GrpcHost::GrpcHost() = default;
GrpcHost::~GrpcHost() {
  Stop(absl::ZeroDuration());
}

absl::StatusOr<std::unique_ptr<GrpcHost>> GrpcHost::Start(ListeningSockets sockets,
                                                          const TlsPem& tls,
                                                          const ServeLimits& limits,
                                                          InferenceCore* core) {
  QuietGrpcLog();
  grpc::EnableDefaultHealthCheckService(true);
  auto host = std::unique_ptr<GrpcHost>(new GrpcHost);
  host->parts_ = std::make_unique<Parts>(limits, tls.on(), core);
  Parts& parts = *host->parts_;
  parts.port = sockets.port();

  if (tls.on()) parts.tls = std::make_shared<RenewedCredentials>(tls);
  grpc::ServerBuilder builder;
  parts.to_grpc = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      tls.on() ? parts.tls : grpc::InsecureServerCredentials());
  builder.RegisterService(&parts.service);
  builder.RegisterCallbackGenericService(&parts.other_methods);
  LimitConnections(builder);
  LimitMemory(builder, "cistern-serve", limits.max_message_bytes, kMaxStreams, limits.memory_bytes);
  if (limits.max_connection_age > absl::ZeroDuration()) {
    builder.AddChannelArgument(
        GRPC_ARG_MAX_CONNECTION_AGE_MS,
        static_cast<int>(absl::ToInt64Milliseconds(limits.max_connection_age)));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, kAgeGraceMs);
  }
  parts.server = builder.BuildAndStart();
  if (parts.server == nullptr) {
    return WithOptions(absl::InvalidArgumentError(
                           tls.on() ? "gRPC does not start with these certificates; check that the "
                                      "key belongs to the certificate, and that both are PEM"
                                    : "gRPC does not start its server"),
                       {"tls_cert", "tls_key"});
  }
  host->SetServing(false);
  AcceptorOptions accepting;
  accepting.max_connections = limits.max_connections;
  accepting.give_memory_back = [] { malloc_trim(0); };
  accepting.hand_over = [to_grpc = parts.to_grpc.get()](int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    to_grpc->HandleNewConnection(&connection);
  };
  parts.acceptor =
      std::make_unique<ConnectionAcceptor>(std::move(sockets), std::move(accepting), &parts.book);
  return host;
}

int GrpcHost::port() const {
  return parts_->port;
}

void GrpcHost::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const health = parts_->server->GetHealthCheckService();
  health->SetServingStatus("", serving);
  health->SetServingStatus(inference::GRPCInferenceService::service_full_name(), serving);
}

void GrpcHost::Renew(const TlsPem& tls) {
  if (parts_->tls != nullptr) parts_->tls->Renew(tls);
}

void GrpcHost::StopAccepting() {
  if (parts_->acceptor == nullptr) return;
  SetServing(false);
  parts_->acceptor = nullptr;
}

void GrpcHost::Stop(absl::Duration grace) {
  if (parts_ == nullptr || parts_->server == nullptr) return;
  StopAccepting();
  parts_->server->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  parts_->server = nullptr;
}

}  // namespace cistern::serve
