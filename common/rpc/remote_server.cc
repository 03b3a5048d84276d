#include "common/rpc/remote_server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/gate.h"
#include "common/rpc/call_trace.h"
#include "common/rpc/channel_connect.h"
#include "common/rpc/channel_security.h"
#include "common/rpc/grpc_convert.h"
#include "proto/control_plane.grpc.pb.h"

namespace cistern {
namespace {

grpc::ChannelArguments ChannelArgumentsOf() {
  grpc::ChannelArguments arguments;
  // Servers are not trusted either: replies are bounded, and never decompressed.
  arguments.SetMaxReceiveMessageSize(static_cast<int>(kMaxBodyBytes + sizeof(FrameHeader)));
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // Connects directly, even if the environment configures an HTTP proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Each channel is a separate connection, even if several lead to the same server.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Detects a stopped or unplugged peer within 10 + 10 seconds, also during a call.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Reconnects to a restarted server within a second; the callers have their own backoff.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);  // of one attempt to connect
  // A server that was replaced has another address under its name; gRPC would ask the name service
  // again after 30 seconds only.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1'000);
  // The parameter client does the retries: it knows which calls may be repeated.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return arguments;
}

constexpr absl::string_view kDataPlane = "/cistern.v1.DataPlane/";

const char* MethodOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::kPull:
      return "Pull";
    case FrameKind::kPush:
      return "Push";
    case FrameKind::kPullDense:
      return "PullDense";
    case FrameKind::kPushDense:
      return "PushDense";
    case FrameKind::kScan:
      return "Scan";
  }
  return "";
}

std::chrono::system_clock::time_point Deadline(absl::Duration timeout) {
  return absl::ToChronoTime(absl::Now() + timeout);
}

// The status of a call. None of these calls is cancelled here, and no handler cancels one, so a
// cancelled call was cut off by a server that stops, before or after its work: as if the connection
// had broken.
absl::Status StatusOfCall(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::CANCELLED) return FromGrpc(status);
  return absl::UnavailableError("the server stopped during the call");
}

// One call in the caller's trace; without a trace, nothing.
class CallSpan {
 public:
  // Before the call begins. context, trace: outlive this; trace may be null.
  CallSpan(TraceFile* trace, const std::string& server, absl::string_view method,
           uint64_t request_bytes, grpc::ClientContext* context)
      : trace_(trace), context_(*context) {
    if (trace_ == nullptr) return;
    call_.id = trace_->NextCallId();
    call_.server = server;
    call_.method = std::string(method);
    call_.request_bytes = request_bytes;
    call_.begin = std::chrono::steady_clock::now();
    context->AddMetadata(kTraceIdName, call_.id);
  }
  // After the call has ended.
  void End(const absl::Status& status, uint64_t reply_bytes) {
    if (trace_ == nullptr) return;
    call_.end = std::chrono::steady_clock::now();
    call_.reply_bytes = reply_bytes;
    if (!status.ok()) call_.error = absl::StatusCodeToString(status.code());
    call_.handled = HandledTimeOf(context_);
    trace_->AddCall(call_);
  }

 private:
  TraceFile* const trace_;
  const grpc::ClientContext& context_;
  TracedCall call_;
};

// A data call in flight; deleted after `done`.
struct DataCall {
  DataCall(TraceFile* trace, const std::string& server, FrameKind frame_kind, const Frame& frame,
           Gate* open)
      : request(ToByteBuffer(frame)),
        kind(frame_kind),
        gate(open),
        span(trace, server, MethodOf(kind), request.Length(), &context) {}

  grpc::ClientContext context;
  grpc::ByteBuffer request, reply;
  const FrameKind kind;
  DataPlane::Done done;
  Gate* const gate;
  CallSpan span;

  absl::StatusOr<Frame> Result(const grpc::Status& status) const {
    if (!status.ok()) return StatusOfCall(status);
    absl::StatusOr<Frame> frame = FromByteBuffer(reply);
    if (!frame.ok()) return frame;
    FrameReader reader(*frame);
    CISTERN_ASSIGN_OR_RETURN(const FrameHeader header, ReadHeader(reader, kind, /*reply=*/true));
    CISTERN_RETURN_IF_ERROR(CheckReplyHash(header, *frame));
    return frame;
  }
};

}  // namespace

struct RemoteServer::Channels {
  // A HoldTerm call. Its result is ignored: it tells the server, not this client, whether the
  // writer lives.
  class Hold;

  std::vector<std::unique_ptr<grpc::GenericStub>> data;
  std::shared_ptr<grpc::Channel> of_control;
  std::unique_ptr<v1::ControlPlane::Stub> control;
  std::atomic<uint32_t> next{0};
  Gate gate;
  absl::Mutex mutex;
  std::shared_ptr<Hold> hold ABSL_GUARDED_BY(mutex);  // of the writer; null: none is open
  bool closing ABSL_GUARDED_BY(mutex) = false;

  // Opens a HoldTerm call. waits: until there is a connection. Null: this client is closing.
  std::shared_ptr<Hold> OpenHold(const v1::Identity& identity, bool claims, bool waits = false);
  // Makes `opened` the writer's call, unless it has ended, and cancels the one before. replaces:
  // also one that is open; if not, and one is open, cancels `opened`.
  void KeepHold(std::shared_ptr<Hold> opened, bool replaces = true);
  void CloseHold();
  bool Holds() {
    absl::MutexLock lock(&mutex);
    return hold != nullptr;
  }

  template <class Request, class Reply>
  absl::Status Call(grpc::Status (v1::ControlPlane::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Reply*),
                    const char* name, const RemoteServer& server, const Request& request,
                    Reply* reply, absl::Duration timeout) {
    // The client's retry limit counts outages of a server; a wrong report of one would hold only
    // for these calls, which some programs make once.
    ConnectChannel(*of_control, server.address_, absl::Now() + timeout);
    grpc::ClientContext context;
    context.set_deadline(Deadline(timeout));
    CallSpan span(server.options_.trace, server.address_, name, request.ByteSizeLong(), &context);
    const absl::Status status = StatusOfCall((control.get()->*method)(&context, request, reply));
    span.End(status, status.ok() ? reply->ByteSizeLong() : 0);
    return status;
  }
};

class RemoteServer::Channels::Hold : public grpc::ClientUnaryReactor {
 public:
  Hold(Channels* channels, const v1::Identity& identity, bool claims, bool waits)
      : channels_(channels) {
    *request_.mutable_identity() = identity;
    request_.set_claims(claims);
    context_.set_wait_for_ready(waits);
  }
  // self: keeps this object until the call has ended.
  void Start(std::shared_ptr<Hold> self) {
    self_ = std::move(self);
    channels_->control->async()->HoldTerm(&context_, &request_, &reply_, this);
    StartCall();
  }
  // Waits until the server knows of the call, or the call has ended.
  void Await(absl::Time limit) {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithDeadline(absl::Condition(&answered_), limit);
  }
  void Cancel() { context_.TryCancel(); }
  bool has_ended() {
    absl::MutexLock lock(&mutex_);
    return ended_;
  }

 private:
  void OnReadInitialMetadataDone(bool) override {
    absl::MutexLock lock(&mutex_);
    answered_ = true;
  }
  void OnDone(const grpc::Status& status) override {
    {
      absl::MutexLock lock(&mutex_);
      answered_ = ended_ = true;
    }
    bool is_kept = false;
    {
      absl::MutexLock lock(&channels_->mutex);
      is_kept = channels_->hold == self_;
      if (is_kept) channels_->hold = nullptr;
    }
    // A call that was refused at once would be refused again.
    const bool was_open = absl::Now() - begin_ > absl::Seconds(1);
    if (is_kept && was_open && status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      channels_->KeepHold(channels_->OpenHold(request_.identity(), /*claims=*/false,
                                              /*waits=*/true),
                          /*replaces=*/false);
    }
    // Releases the call before it leaves the gate: after that, gRPC must not be used any more.
    Gate* const gate = &channels_->gate;
    self_.reset();
    gate->Leave();
  }

  Channels* const channels_;
  const absl::Time begin_ = absl::Now();
  grpc::ClientContext context_;
  v1::HoldTermRequest request_;
  v1::HoldTermReply reply_;
  std::shared_ptr<Hold> self_;
  absl::Mutex mutex_;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false, ended_ ABSL_GUARDED_BY(mutex_) = false;
};

std::shared_ptr<RemoteServer::Channels::Hold> RemoteServer::Channels::OpenHold(
    const v1::Identity& identity, bool claims, bool waits) {
  if (!gate.Enter()) return nullptr;
  auto opened = std::make_shared<Hold>(this, identity, claims, waits);
  opened->Start(opened);
  return opened;
}

void RemoteServer::Channels::KeepHold(std::shared_ptr<Hold> opened, bool replaces) {
  {
    absl::MutexLock lock(&mutex);
    if (!closing && (replaces || hold == nullptr)) {
      hold.swap(opened);
      if (hold != nullptr && hold->has_ended()) hold = nullptr;
    }
  }
  if (opened != nullptr) opened->Cancel();
}

void RemoteServer::Channels::CloseHold() {
  std::shared_ptr<Hold> open;
  {
    absl::MutexLock lock(&mutex);
    closing = true;
    open.swap(hold);
  }
  if (open != nullptr) open->Cancel();
}

std::unique_ptr<RemoteServer> RemoteServer::Create(const std::string& address,
                                                   const RemoteOptions& options) {
  return std::unique_ptr<RemoteServer>(new RemoteServer(address, options));
}

RemoteServer::RemoteServer(const std::string& address, const RemoteOptions& options)
    : address_(address), options_(options), channels_(std::make_unique<Channels>()) {
  QuietGrpcLog();
  for (int i = 0; i < std::max(1, options.channels); ++i) {
    auto channel =
        grpc::CreateCustomChannel(address,
                                  options.security == nullptr ? grpc::InsecureChannelCredentials()
                                                              : options.security->credentials,
                                  ChannelArgumentsOf());
    if (i == 0) {
      channels_->of_control = channel;
      channels_->control = v1::ControlPlane::NewStub(channel);
    }
    channels_->data.push_back(std::make_unique<grpc::GenericStub>(channel));
  }
}

RemoteServer::~RemoteServer() {
  channels_->CloseHold();
  channels_->gate.Close();
}

void RemoteServer::Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) {
  if (!channels_->gate.Enter()) {
    done(absl::UnavailableError("this client is closing"));
    return;
  }
  auto* call = new DataCall(options_.trace, address_, kind, request, &channels_->gate);
  call->context.set_deadline(Deadline(timeout));
  call->done = std::move(done);
  grpc::GenericStub& stub = *channels_->data[channels_->next++ % channels_->data.size()];
  stub.UnaryCall(&call->context, absl::StrCat(kDataPlane, MethodOf(kind)), grpc::StubOptions(),
                 &call->request, &call->reply, [call](grpc::Status status) {
                   absl::StatusOr<Frame> result = call->Result(status);
                   call->span.End(result.status(), call->reply.Length());
                   call->done(std::move(result));
                   Gate* gate = call->gate;
                   delete call;
                   gate->Leave();
                 });
}

template <class Make>
absl::Status RemoteServer::Around(const v1::ClaimEpochRequest& request, absl::Duration timeout,
                                  const Make& call) {
  // An older server, or one with too many such calls, refuses it; the claim does not depend on it.
  const absl::Time limit = absl::Now() + std::min(timeout, absl::Seconds(5));
  ConnectChannel(*channels_->of_control, address_, limit);
  std::shared_ptr<Channels::Hold> hold = channels_->OpenHold(request.identity(), /*claims=*/true);
  if (hold != nullptr) hold->Await(limit);
  const absl::Status status = call();
  if (status.ok()) {
    channels_->KeepHold(std::move(hold));
    if (!channels_->Holds()) {
      channels_->KeepHold(channels_->OpenHold(request.identity(), /*claims=*/false));
    }
  } else if (hold != nullptr) {
    hold->Cancel();
  }
  return status;
}

template <class Make>
absl::Status RemoteServer::Around(const v1::PassRequest& request, absl::Duration,
                                  const Make& call) {
  const absl::Status status = call();
  if (status.ok() && request.identity().secret() != 0 && !channels_->Holds()) {
    channels_->KeepHold(channels_->OpenHold(request.identity(), /*claims=*/false));
  }
  return status;
}

#define CISTERN_METHOD(name, request, reply, length, effect, role)                           \
  absl::Status RemoteServer::name(const v1::request& in, v1::reply* out) {                   \
    const absl::Duration timeout = TimeoutOf(LengthOf(CallLength::length, in));              \
    return Around(in, timeout, [&] {                                                         \
      return channels_->Call(&v1::ControlPlane::Stub::name, #name, *this, in, out, timeout); \
    });                                                                                      \
  }
CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

absl::Duration RemoteServer::TimeoutOf(CallLength length) const {
  const bool is_long = length == CallLength::kCommit || length == CallLength::kLong;
  return is_long ? options_.long_call_timeout : options_.call_timeout;
}

}  // namespace cistern
