#include "common/rpc/server_host.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/synchronization/notification.h"
#include "common/base/thread_pool.h"
#include "common/metrics/metric_text.h"
#include "common/rpc/connection_acceptor.h"
#include "common/rpc/connection_limits.h"
#include "common/rpc/control_rpc.h"
#include "common/rpc/data_rpc.h"
#include "common/rpc/health_probe.h"
#include "common/rpc/server_credentials.h"
#include "common/tls/tls_renewal.h"

namespace cistern {
namespace {

// The time that gRPC gets to cancel the remaining calls.
constexpr absl::Duration kAfterGrace = absl::Seconds(1);
// How long a connection may hold a large incomplete message without progress.
constexpr absl::Duration kStall = absl::Seconds(10);
constexpr int kMaxStreams = 64;  // concurrent calls of a connection

}  // namespace

struct ServerHost::Services {
  Services(ControlPlane* control_plane, DataPlane* data_plane, const HostOptions& options)
      : access(options.cluster, options.tls.on()),
        admission{&access, nullptr, options.refused},
        max_connections(options.max_connections),
        book(options.memory_bytes, kStall, kMaxStreams, options.tls.on()),
        holds(control_plane),
        control(control_plane, &threads, &holds, &book, &admission),
        data(data_plane, &book, &admission) {}

  CallAccess access;
  std::unique_ptr<AuditLog> audit;
  Admission admission;
  const int max_connections;
  ConnectionBook book;
  ControlThreads threads;
  OpenHolds holds;
  ControlRpc control;
  DataRpc data;
  std::shared_ptr<RenewedCredentials> credentials;  // null: no TLS
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> to_grpc;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<TlsRenewal> renewal;
  std::unique_ptr<ConnectionAcceptor> acceptor;
  std::unique_ptr<HealthProbe> probe;
  absl::Notification shut_down;  // `server` is shut down: no handler is running
  std::unique_ptr<ThreadPool> shutting_down;
};

ServerHost::ServerHost() = default;
ServerHost::~ServerHost() {
  Stop(absl::ZeroDuration());
}

absl::StatusOr<std::unique_ptr<ServerHost>> ServerHost::Start(const std::string& bind_address,
                                                              int port, ControlPlane* control,
                                                              DataPlane* data,
                                                              const HostOptions& options) {
  if (port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("port ", port, " is not in 0 to 65535"));
  }
  CISTERN_ASSIGN_OR_RETURN(const TlsPem tls, ReadMutualTls(options.tls));
  CISTERN_ASSIGN_OR_RETURN(ListeningSockets sockets, ListeningSockets::Open(bind_address, port));
  QuietGrpcLog();
  grpc::EnableDefaultHealthCheckService(true);
  auto host = std::unique_ptr<ServerHost>(new ServerHost);
  host->services_ = std::make_unique<Services>(control, data, options);
  Services& services = *host->services_;
  if (!options.audit_log.empty()) {
    CISTERN_ASSIGN_OR_RETURN(services.audit, AuditLog::Open(options.audit_log, options.rank));
    services.admission.audit = services.audit.get();
  }
  if (tls.on()) services.credentials = std::make_shared<RenewedCredentials>(tls);
  host->port_ = sockets.port();

  grpc::ServerBuilder builder;
  services.to_grpc = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      tls.on() ? services.credentials : grpc::InsecureServerCredentials());
  builder.RegisterService(&services.control);
  builder.RegisterService(&services.data);
  LimitConnections(builder);
  LimitMemory(builder, "cistern-server", kMaxBodyBytes + sizeof(FrameHeader), kMaxStreams,
              options.memory_bytes);
  services.server = builder.BuildAndStart();
  if (services.server == nullptr) return absl::InternalError("gRPC did not start its server");

  grpc::HealthCheckServiceInterface* health = services.server->GetHealthCheckService();
  health->SetServingStatus(true);
  AcceptorOptions accepting;
  accepting.max_connections = services.max_connections;
  accepting.give_memory_back = options.give_memory_back;
  accepting.hand_over = [to_grpc = services.to_grpc.get()](int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    to_grpc->HandleNewConnection(&connection);
  };
  services.acceptor = std::make_unique<ConnectionAcceptor>(std::move(sockets), std::move(accepting),
                                                           &services.book);
  if (tls.on()) {
    services.renewal = std::make_unique<TlsRenewal>(
        options.tls.cert, [files = options.tls] { return ReadMutualTls(files); }, tls,
        [credentials = services.credentials](const TlsPem& renewed) {
          credentials->Renew(renewed);
          return absl::OkStatus();
        });
  }
  services.probe = std::make_unique<HealthProbe>(
      control, &services.threads, [health](bool serving) { health->SetServingStatus(serving); });
  return host;
}

std::string ServerHost::MetricsText() const {
  const ConnectionBook::Figures figures = services_->book.figures();
  MetricText text("cistern_server_");
  text.Gauge("connections", "Open connections.", figures.open);
  text.Gauge("connections_limit", "Above it, further connections are refused.",
             services_->max_connections);
  text.Counter("connections_total", "Connections accepted.", figures.accepted);
  text.Counter("connections_without_call_total",
               "Connections that ended without a call: strangers whom TLS refused, probes, scans.",
               figures.without_call);
  text.Gauge("connection_bytes", "Memory that connections and their calls hold.",
             figures.held_bytes);
  return text.Take();
}

bool ServerHost::Stop(absl::Duration grace) {
  if (services_ == nullptr || services_->server == nullptr) return true;
  if (services_->shutting_down == nullptr) {
    services_->acceptor = nullptr;
    services_->probe = nullptr;
    services_->renewal = nullptr;
    services_->server->GetHealthCheckService()->SetServingStatus(false);
    services_->threads.Stop();
    services_->holds.Stop();
    services_->book.Close(grace);
    services_->shutting_down = std::make_unique<ThreadPool>(1);
    services_->shutting_down->Run([services = services_.get()] {
      services->server->Shutdown(absl::ToChronoTime(absl::Now()));
      services->shut_down.Notify();
    });
  }
  return services_->shut_down.WaitForNotificationWithTimeout(kAfterGrace);
}

}  // namespace cistern
