#include "common/rpc/control_rpc.h"

#include <memory>
#include <string>

#include "common/rpc/guarded.h"
#include "common/rpc/unary_call.h"
#include "common/wire/call_peer.h"

namespace cistern {
namespace {

// A manifest of 10,000 files is about 1 MB.
constexpr size_t kMaxRequestBytes = 4u << 20;
// The approximate maximum ratio of a message's memory to its size on the wire: two bytes can encode
// an empty message in a list.
constexpr uint64_t kMemoryOfWireByte = 64;

absl::Status CheckSize(size_t bytes) {
  if (bytes <= kMaxRequestBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a control request of ", bytes, " bytes is above the limit of ", kMaxRequestBytes));
}

template <class Request>
absl::Status Parse(const grpc::ByteBuffer& bytes, Request* request) {
  grpc::ByteBuffer copy(bytes);  // shares the bytes; gRPC empties the buffer that it reads
  const grpc::Status status = grpc::SerializationTraits<Request>::Deserialize(&copy, request);
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request is not a ", Request::descriptor()->name(), ": ",
                   status.error_message(), "; the other side runs another version of Cistern"));
}

}  // namespace

template <class Request, class Reply>
grpc::ServerUnaryReactor* ControlRpc::Run(const char* name, Role role, CallLength length,
                                          Context* context, const Bytes* in, Bytes* out,
                                          absl::Status (Plane::*method)(const Request&, Reply*)) {
  const Caller caller = admission_->access->CallerOf(*context);
  absl::StatusOr<ConnectionBook::Call> held =
      book_->Begin(caller.peer, in->Length(), in->Length() * kMemoryOfWireByte);
  auto* call = new UnaryCall(held.ok() ? *std::move(held) : ConnectionBook::Call(),
                             caller.trace_id.empty() ? nullptr : context);
  absl::Status status = held.ok() ? admission_->Admit(caller, name, role) : held.status();
  if (status.ok()) status = CheckSize(in->Length());
  auto request = std::make_shared<Request>();
  if (status.ok()) status = Guarded([&] { return Parse(*in, request.get()); });
  if (!status.ok()) {
    call->FinishWith(status);
    return call;
  }
  threads_->Run(LengthOf(length, *request), [this, caller, name, role, call, request, out,
                                             method](const absl::Status& refusal) {
    if (!refusal.ok()) return call->FinishWith(refusal);
    const CallPeer peer(caller.text());
    const absl::Status done = Guarded([&]() -> absl::Status {
      Reply reply;
      CISTERN_RETURN_IF_ERROR((plane_->*method)(*request, &reply));
      bool own = false;
      return FromGrpc(grpc::SerializationTraits<Reply>::Serialize(reply, out, &own));
    });
    admission_->Record(caller, name, role, *request, done);
    if (!done.ok()) return call->FinishWith(done);
    call->FinishReply(out->Length());
  });
  return call;
}

#define CISTERN_METHOD(name, request, reply, length, effect, role)                              \
  grpc::ServerUnaryReactor* ControlRpc::name(Context* context, const Bytes* in, Bytes* out) {   \
    return Run<v1::request, v1::reply>(#name, Role::role, CallLength::length, context, in, out, \
                                       &Plane::name);                                           \
  }
CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

grpc::ServerUnaryReactor* ControlRpc::HoldTerm(Context* context, const Bytes* in, Bytes* out) {
  const Caller caller = admission_->access->CallerOf(*context);
  absl::StatusOr<ConnectionBook::Call> held = book_->Begin(caller.peer, in->Length(), 0);
  v1::HoldTermRequest request;
  absl::Status status =
      held.ok() ? admission_->Admit(caller, "HoldTerm", Role::kWorker) : held.status();
  if (status.ok()) status = CheckSize(in->Length());
  if (status.ok()) status = Guarded([&] { return Parse(*in, &request); });
  if (status.ok()) {
    const CallPeer peer(caller.text());
    return holds_->Open(request, *std::move(held));
  }
  auto* call = new UnaryCall(ConnectionBook::Call());
  call->FinishWith(status);
  return call;
}

}  // namespace cistern
