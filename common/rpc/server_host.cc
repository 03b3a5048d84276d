#include "common/rpc/server_host.h"

#include <arpa/inet.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/rpc/grpc_convert.h"
#include "common/thread_pool.h"
#include "proto/control_plane.grpc.pb.h"
#include "proto/data_plane.grpc.pb.h"

namespace cistern {
namespace {

// Long control calls may wait for each other; short ones need threads beside them.
constexpr int kControlThreads = 8;

// Control calls: a generated method hands its messages to the plane, on the pool.
class ControlService final : public v1::ControlPlane::CallbackService {
 public:
  ControlService(cistern::ControlPlane* plane, ThreadPool* pool) : plane_(plane), pool_(pool) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Plane = cistern::ControlPlane;

  template <class Request, class Reply>
  Reactor* Run(Context* context, const Request* request, Reply* reply,
               absl::Status (Plane::*method)(const Request&, Reply*)) {
    Reactor* reactor = context->DefaultReactor();
    pool_->Run([this, request, reply, method, reactor] {
      reactor->Finish(ToGrpc((plane_->*method)(*request, reply)));
    });
    return reactor;
  }

#define CISTERN_METHOD(name, request, reply, length)                                   \
  Reactor* name(Context* context, const v1::request* in, v1::reply* out) override { \
    return Run(context, in, out, &Plane::name);                                        \
  }
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

  Plane* const plane_;
  ThreadPool* const pool_;
};

// Every data method as raw bytes.
using RawDataService = v1::DataPlane::WithRawCallbackMethod_Pull<
    v1::DataPlane::WithRawCallbackMethod_Push<v1::DataPlane::WithRawCallbackMethod_PullDense<
        v1::DataPlane::WithRawCallbackMethod_PushDense<
            v1::DataPlane::WithRawCallbackMethod_Scan<v1::DataPlane::Service>>>>>;

// The header of a request that was refused, so that the refusal can be addressed.
FrameHeader HeaderForError(FrameKind kind, const Frame& request) {
  FrameHeader header;
  FrameReader(request).Read(&header, sizeof(header));
  header.kind = static_cast<uint16_t>(kind);
  return header;
}

// Data calls: bytes to frame, the plane's handler, frame to bytes. Errors travel inside the frame.
class DataService final : public RawDataService {
 public:
  explicit DataService(cistern::DataPlane* plane) : plane_(plane) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Bytes = grpc::ByteBuffer;

  Reactor* Run(FrameKind kind, Context* context, const Bytes* bytes, Bytes* reply) {
    Reactor* reactor = context->DefaultReactor();
    absl::StatusOr<Frame> request = FromByteBuffer(*bytes);
    if (!request.ok()) {
      reactor->Finish(ToGrpc(request.status()));
      return reactor;
    }
    const absl::Duration left = absl::FromChrono(context->deadline()) - absl::Now();
    plane_->Call(
        kind, *request, left,
        [kind, request = *request, reply, reactor](absl::StatusOr<Frame> result) {
          *reply = ToByteBuffer(
              result.ok() ? *result : ErrorFrame(HeaderForError(kind, request), result.status()));
          reactor->Finish(grpc::Status::OK);
        });
    return reactor;
  }

  Reactor* Pull(Context* context, const Bytes* bytes, Bytes* reply) override {
    return Run(FrameKind::kPull, context, bytes, reply);
  }
  Reactor* Push(Context* context, const Bytes* bytes, Bytes* reply) override {
    return Run(FrameKind::kPush, context, bytes, reply);
  }
  Reactor* PullDense(Context* context, const Bytes* bytes, Bytes* reply) override {
    return Run(FrameKind::kPullDense, context, bytes, reply);
  }
  Reactor* PushDense(Context* context, const Bytes* bytes, Bytes* reply) override {
    return Run(FrameKind::kPushDense, context, bytes, reply);
  }
  Reactor* Scan(Context* context, const Bytes* bytes, Bytes* reply) override {
    return Run(FrameKind::kScan, context, bytes, reply);
  }

  cistern::DataPlane* const plane_;
};

// Why `address`:`port` cannot be bound: gRPC does not tell, so the kernel is asked again.
absl::Status BindError(const std::string& address, int port) {
  const std::string where = absl::StrCat("port ", port, " on ", address);
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const int looked_up = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (looked_up != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' is not an address of this machine: ", gai_strerror(looked_up),
                     "; use --bind=127.0.0.1"));
  }
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const int bound = fd < 0 ? -1 : bind(fd, found->ai_addr, found->ai_addrlen);
  const int error = bound == 0 ? EADDRINUSE : errno;
  freeaddrinfo(found);
  if (fd >= 0) close(fd);
  if (error == EADDRINUSE) {
    return absl::FailedPreconditionError(absl::StrCat(
        where,
        " is taken: another process listens there; stop it, choose another --port, or let "
        "--port=0 pick a free one"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(where, " cannot be bound: ", std::strerror(error)));
}

std::string HostAndPort(const std::string& address, int port) {
  const bool ipv6 = address.find(':') != std::string::npos && address[0] != '[';
  return ipv6 ? absl::StrCat("[", address, "]:", port) : absl::StrCat(address, ":", port);
}

}  // namespace

struct ServerHost::Services {
  Services(cistern::ControlPlane* control_plane, cistern::DataPlane* data_plane)
      : control(control_plane, &pool), data(data_plane) {}

  ThreadPool pool{kControlThreads};
  ControlService control;
  DataService data;
  std::unique_ptr<grpc::Server> server;
};

ServerHost::ServerHost() = default;
ServerHost::~ServerHost() {
  Stop(absl::ZeroDuration());
}

absl::StatusOr<std::unique_ptr<ServerHost>> ServerHost::Start(const std::string& bind_address,
                                                              int port, ControlPlane* control,
                                                              DataPlane* data) {
  if (port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("port ", port, " is not 0 to 65535"));
  }
  QuietGrpcLog();
  grpc::EnableDefaultHealthCheckService(true);
  auto host = std::unique_ptr<ServerHost>(new ServerHost);
  host->services_ = std::make_unique<Services>(control, data);

  grpc::ServerBuilder builder;
  builder.AddListeningPort(HostAndPort(bind_address, port), grpc::InsecureServerCredentials(),
                           &host->port_);
  builder.RegisterService(&host->services_->control);
  builder.RegisterService(&host->services_->data);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxBodyBytes + sizeof(FrameHeader)));
  builder.SetMaxSendMessageSize(-1);
  // By default two servers could share a port, and each would get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Lets clients probe an idle connection every 10 seconds (remote_server.cc).
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  host->services_->server = builder.BuildAndStart();
  if (host->services_->server == nullptr || host->port_ == 0) {
    return BindError(bind_address, port);
  }
  host->services_->server->GetHealthCheckService()->SetServingStatus(true);
  return host;
}

void ServerHost::Stop(absl::Duration grace) {
  if (services_ == nullptr || services_->server == nullptr) return;
  services_->server->GetHealthCheckService()->SetServingStatus(false);
  services_->server->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  services_->server.reset();
}

}  // namespace cistern
