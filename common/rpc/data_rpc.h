// The gRPC service of the data plane: converts bytes to a frame, calls the plane, and converts the
// reply frame to bytes. Errors are sent inside the frame. Replies with rows include a body hash.
#pragma once

#include "common/rpc/admission.h"
#include "common/rpc/connection_book.h"
#include "common/rpc/grpc_convert.h"
#include "common/wire/planes.h"
#include "proto/data_plane.grpc.pb.h"

namespace cistern {

// Every method as raw bytes.
using RawDataService = v1::DataPlane::WithRawCallbackMethod_Pull<
    v1::DataPlane::WithRawCallbackMethod_Push<v1::DataPlane::WithRawCallbackMethod_PullDense<
        v1::DataPlane::WithRawCallbackMethod_PushDense<
            v1::DataPlane::WithRawCallbackMethod_Scan<v1::DataPlane::Service>>>>>;

// Threads: called on gRPC's threads. Borrows all of its arguments.
class DataRpc final : public RawDataService {
 public:
  DataRpc(cistern::DataPlane* plane, ConnectionBook* book, const Admission* admission)
      : plane_(plane), book_(book), admission_(admission) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Bytes = grpc::ByteBuffer;

  Reactor* Run(FrameKind kind, Context* context, const Bytes* in, Bytes* out);

  Reactor* Pull(Context* context, const Bytes* in, Bytes* out) override {
    return Run(FrameKind::kPull, context, in, out);
  }
  Reactor* Push(Context* context, const Bytes* in, Bytes* out) override {
    return Run(FrameKind::kPush, context, in, out);
  }
  Reactor* PullDense(Context* context, const Bytes* in, Bytes* out) override {
    return Run(FrameKind::kPullDense, context, in, out);
  }
  Reactor* PushDense(Context* context, const Bytes* in, Bytes* out) override {
    return Run(FrameKind::kPushDense, context, in, out);
  }
  Reactor* Scan(Context* context, const Bytes* in, Bytes* out) override {
    return Run(FrameKind::kScan, context, in, out);
  }

  cistern::DataPlane* const plane_;
  ConnectionBook* const book_;
  const Admission* const admission_;
};

}  // namespace cistern
