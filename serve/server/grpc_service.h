// The gRPC service GRPCInferenceService (proto/inference.proto).
//
// Messages arrive as raw bytes and are parsed once memory has been reserved for them
// (common/rpc/connection_book.h). ModelInfer is parsed, computed and serialized on the core's
// queue; the other calls are short and are answered on gRPC's threads.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include "common/rpc/connection_book.h"
#include "proto/inference.grpc.pb.h"
#include "serve/server/inference_core.h"

namespace cistern::serve {

namespace oip = ::inference;

// Every method as raw bytes.
using RawInferenceService = oip::GRPCInferenceService::WithRawCallbackMethod_ServerLive<
    oip::GRPCInferenceService::WithRawCallbackMethod_ServerReady<
        oip::GRPCInferenceService::WithRawCallbackMethod_ModelReady<
            oip::GRPCInferenceService::WithRawCallbackMethod_ServerMetadata<
                oip::GRPCInferenceService::WithRawCallbackMethod_ModelMetadata<
                    oip::GRPCInferenceService::WithRawCallbackMethod_ModelConfig<
                        oip::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<
                            oip::GRPCInferenceService::Service>>>>>>>;

// Threads: called on gRPC's threads. Borrows its arguments.
class GrpcService final : public RawInferenceService {
 public:
  GrpcService(InferenceCore* core, ConnectionBook* book) : core_(core), book_(book) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Bytes = grpc::ByteBuffer;

  // Answers a short call: `handle` fills the reply.
  template <class Request, class Reply, class Handle>
  Reactor* Run(ServeMethod method, Context* context, const Bytes* in, Bytes* out,
               const Handle& handle);

  Reactor* ServerLive(Context* context, const Bytes* in, Bytes* out) override;
  Reactor* ServerReady(Context* context, const Bytes* in, Bytes* out) override;
  Reactor* ModelReady(Context* context, const Bytes* in, Bytes* out) override;
  Reactor* ServerMetadata(Context* context, const Bytes* in, Bytes* out) override;
  Reactor* ModelMetadata(Context* context, const Bytes* in, Bytes* out) override;
  Reactor* ModelConfig(Context* context, const Bytes* in, Bytes* out) override;
  Reactor* ModelInfer(Context* context, const Bytes* in, Bytes* out) override;

  InferenceCore* const core_;
  ConnectionBook* const book_;
};

// Tells the callers of other methods which ones there are. Threads: called on gRPC's threads.
class OtherMethods final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
};

}  // namespace cistern::serve
