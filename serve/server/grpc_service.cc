#include "serve/server/grpc_service.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <utility>

#include "absl/time/clock.h"
#include "common/rpc/grpc_convert.h"
#include "common/rpc/guarded.h"
#include "common/rpc/unary_call.h"
#include "serve/server/grpc_tensors.h"

namespace cistern::serve {
namespace {

// Of calls other than ModelInfer.
constexpr size_t kMaxShortRequestBytes = 64u << 10;
constexpr uint64_t kMemoryOfWireByte = 64;

template <class Message>
absl::Status Parse(const grpc::ByteBuffer& bytes, Message* message) {
  grpc::ByteBuffer copy(bytes);  // shares the bytes; gRPC empties the buffer that it reads
  const grpc::Status status = grpc::SerializationTraits<Message>::Deserialize(&copy, message);
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request is not a ",
                                                 Message::descriptor()->full_name(),
                                                 " of the Open Inference Protocol"));
}

template <class Message>
absl::Status Serialize(const Message& message, grpc::ByteBuffer* out) {
  bool own = false;
  return FromGrpc(grpc::SerializationTraits<Message>::Serialize(message, out, &own));
}

// What a request takes of its connection's memory; see connection_book.h. The wire carries the
// headers of HTTP/2 and of TLS besides.
uint64_t WireBytes(const grpc::ByteBuffer& bytes) {
  return bytes.Length() + bytes.Length() / 256;
}

uint64_t InferMemory(const grpc::ByteBuffer& bytes) {
  grpc::ByteBuffer copy(bytes);
  grpc::ProtoBufferReader reader(&copy);
  return reader.status().ok() ? MemoryOfRequest(&reader, bytes.Length())
                              : bytes.Length() * kMemoryOfWireByte;
}

absl::Status TooLarge(uint64_t bytes, uint64_t memory, uint64_t limit) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the request has ", bytes, " bytes, and decoding it may take ", memory, ", more than the ",
      limit, " of all requests together; send fewer samples, or tensors in raw_input_contents, ",
      "which take less than typed contents"));
}

// kDeadlineExceeded or kCancelled if the caller no longer waits for the reply.
absl::Status CheckAwaited(const grpc::CallbackServerContext& context) {
  if (absl::FromChrono(context.deadline()) <= absl::Now()) {
    return absl::DeadlineExceededError("the deadline passed while the request waited");
  }
  if (context.IsCancelled()) return absl::CancelledError("the caller has cancelled the request");
  return absl::OkStatus();
}

}  // namespace

template <class Request, class Reply, class Handle>
grpc::ServerUnaryReactor* GrpcService::Run(ServeMethod method, Context* context, const Bytes* in,
                                           Bytes* out, const Handle& handle) {
  const absl::Time arrived = absl::Now();
  absl::StatusOr<ConnectionBook::Call> held =
      book_->Begin(context->peer(), WireBytes(*in), in->Length() * kMemoryOfWireByte);
  absl::Status status = held.status();
  auto* call = new UnaryCall(held.ok() ? *std::move(held) : ConnectionBook::Call());
  if (status.ok() && in->Length() > kMaxShortRequestBytes) {
    status = absl::InvalidArgumentError(
        absl::StrCat("a request of this kind has at most ", kMaxShortRequestBytes, " bytes"));
  }
  if (status.ok()) {
    status = Guarded([&]() -> absl::Status {
      Request request;
      Reply reply;
      CISTERN_RETURN_IF_ERROR(Parse(*in, &request));
      CISTERN_RETURN_IF_ERROR(handle(request, &reply));
      return Serialize(reply, out);
    });
  }
  core_->Count(Protocol::kGrpc, method, status, arrived);
  if (status.ok()) {
    call->FinishReply(out->Length());
  } else {
    call->FinishWith(status);
  }
  return call;
}

grpc::ServerUnaryReactor* GrpcService::ServerLive(Context* context, const Bytes* in, Bytes* out) {
  return Run<oip::ServerLiveRequest, oip::ServerLiveResponse>(ServeMethod::kHealth, context, in,
                                                              out, [](const auto&, auto* reply) {
                                                                reply->set_live(true);
                                                                return absl::OkStatus();
                                                              });
}

grpc::ServerUnaryReactor* GrpcService::ServerReady(Context* context, const Bytes* in, Bytes* out) {
  return Run<oip::ServerReadyRequest, oip::ServerReadyResponse>(
      ServeMethod::kHealth, context, in, out, [this](const auto&, auto* reply) {
        reply->set_ready(core_->CheckReady().ok());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GrpcService::ModelReady(Context* context, const Bytes* in, Bytes* out) {
  return Run<oip::ModelReadyRequest, oip::ModelReadyResponse>(
      ServeMethod::kHealth, context, in, out, [this](const auto& request, auto* reply) {
        reply->set_ready(core_->CheckReady().ok());
        const absl::Status found = core_->CheckModel(request.name(), request.version());
        return absl::IsUnavailable(found) ? absl::OkStatus() : found;  // not ready yet
      });
}

grpc::ServerUnaryReactor* GrpcService::ServerMetadata(Context* context, const Bytes* in,
                                                      Bytes* out) {
  return Run<oip::ServerMetadataRequest, oip::ServerMetadataResponse>(
      ServeMethod::kMetadata, context, in, out, [](const auto&, auto* reply) {
        *reply = ToMessage(DescribeServer({}));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GrpcService::ModelMetadata(Context* context, const Bytes* in,
                                                     Bytes* out) {
  return Run<oip::ModelMetadataRequest, oip::ModelMetadataResponse>(
      ServeMethod::kMetadata, context, in, out,
      [this](const auto& request, auto* reply) -> absl::Status {
        CISTERN_RETURN_IF_ERROR(core_->CheckModel(request.name(), request.version()));
        *reply = ToMessage(core_->Model());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GrpcService::ModelConfig(Context* context, const Bytes* in, Bytes* out) {
  return Run<oip::ModelConfigRequest, oip::ModelConfigResponse>(
      ServeMethod::kMetadata, context, in, out,
      [this](const auto& request, auto* reply) -> absl::Status {
        CISTERN_RETURN_IF_ERROR(core_->CheckModel(request.name(), request.version()));
        *reply = ToConfigMessage(core_->Model());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* GrpcService::ModelInfer(Context* context, const Bytes* in, Bytes* out) {
  const absl::Time arrived = absl::Now();
  const uint64_t memory = InferMemory(*in);
  absl::StatusOr<ConnectionBook::Call> held =
      memory > book_->limit_bytes() ? absl::StatusOr<ConnectionBook::Call>(
                                          TooLarge(in->Length(), memory, book_->limit_bytes()))
                                    : book_->Begin(context->peer(), WireBytes(*in), memory);
  absl::Status refused = held.status();
  auto* call = new UnaryCall(held.ok() ? *std::move(held) : ConnectionBook::Call());
  const auto fail = [this, call, arrived](const absl::Status& status) {
    core_->Count(Protocol::kGrpc, ServeMethod::kInfer, status, arrived);
    call->FinishWith(status);
  };
  if (refused.ok()) {
    refused = core_->queue().Run([this, context, call, in, out, arrived, fail] {
      bool finished = false;
      const absl::Status done = Guarded([&]() -> absl::Status {
        CISTERN_RETURN_IF_ERROR(CheckAwaited(*context));
        oip::ModelInferRequest message;
        CISTERN_RETURN_IF_ERROR(Parse(*in, &message));
        CISTERN_ASSIGN_OR_RETURN(const InferRequest request, FromMessage(message));
        const bool raw = message.raw_input_contents_size() > 0;
        absl::Status failure;
        core_->Infer(request, arrived, [&](const absl::StatusOr<InferReply>& reply) {
          failure = reply.ok() ? Serialize(ToMessage(*reply, raw), out) : reply.status();
          if (!failure.ok()) return;
          finished = true;
          core_->Count(Protocol::kGrpc, ServeMethod::kInfer, failure, arrived);
          call->FinishReply(out->Length());  // from here on call, in and out may be gone
        });
        return failure;
      });
      if (!finished) fail(done);
    });
  }
  if (!refused.ok()) fail(refused);
  return call;
}

grpc::ServerGenericBidiReactor* OtherMethods::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  class Refusal : public grpc::ServerGenericBidiReactor {
   public:
    explicit Refusal(const std::string& method) {
      Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                          absl::StrCat("this server has no method ", Quoted(method),
                                       "; it has ServerLive, ServerReady, ModelReady, "
                                       "ServerMetadata, ModelMetadata, ModelConfig and ModelInfer "
                                       "of ",
                                       oip::GRPCInferenceService::service_full_name(),
                                       ", and grpc.health.v1.Health")));
    }
    void OnDone() override { delete this; }
  };
  return new Refusal(context->method());
}

}  // namespace cistern::serve
