#include "common/rpc/data_rpc.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/rpc/guarded.h"
#include "common/rpc/unary_call.h"
#include "common/wire/call_peer.h"

namespace cistern {
namespace {

// The header of a refused request, from which the error reply is built.
FrameHeader HeaderForError(FrameKind kind, const Frame& request) {
  FrameHeader header;
  FrameReader(request).Read(&header, sizeof(header));
  header.kind = static_cast<uint16_t>(kind);
  return header;
}

Role RoleOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::kPull:
    case FrameKind::kPullDense:
    case FrameKind::kScan:
      return Role::kReader;
    case FrameKind::kPush:
    case FrameKind::kPushDense:
      return Role::kWorker;
  }
  return Role::kAdmin;
}

bool CarriesRows(FrameKind kind) {
  return kind == FrameKind::kPull || kind == FrameKind::kPullDense || kind == FrameKind::kScan;
}

Frame ReplyTo(FrameKind kind, const Frame& request, const absl::StatusOr<Frame>& result) {
  if (!result.ok()) return ErrorFrame(HeaderForError(kind, request), result.status());
  return CarriesRows(kind) ? WithBodyHash(*result) : *result;
}

}  // namespace

grpc::ServerUnaryReactor* DataRpc::Run(FrameKind kind, Context* context, const Bytes* in,
                                       Bytes* out) {
  const Caller caller = admission_->access->CallerOf(*context);
  absl::StatusOr<ConnectionBook::Call> held = book_->Begin(caller.peer, in->Length(), in->Length());
  auto* call = new UnaryCall(held.ok() ? *std::move(held) : ConnectionBook::Call(),
                             caller.trace_id.empty() ? nullptr : context);
  const absl::Status admitted =
      held.ok() ? admission_->Admit(caller, FrameKindName(kind), RoleOf(kind)) : held.status();
  absl::StatusOr<Frame> request = admitted.ok() ? FromByteBuffer(*in) : admitted;
  if (!request.ok()) {
    call->FinishWith(request.status());
    return call;
  }
  const CallPeer peer(caller.text());
  const absl::Duration left = absl::FromChrono(context->deadline()) - absl::Now();
  auto answered = std::make_shared<bool>(false);
  const absl::Status thrown = Guarded([&] {
    plane_->Call(
        kind, *request, left,
        [kind, request = *request, out, call, answered](const absl::StatusOr<Frame>& result) {
          *out = ToByteBuffer(ReplyTo(kind, request, result));
          *answered = true;
          call->FinishReply(out->Length());
        });
    return absl::OkStatus();
  });
  if (!thrown.ok() && !*answered) call->FinishWith(thrown);
  return call;
}

}  // namespace cistern
