// The gRPC service of the control plane: parses the request, runs the plane's method on a thread
// for calls of that length, and serializes the reply.
//
// A caller whose certificate lacks the method's role is refused before its request is parsed, and
// calls that change something are recorded (admission.h).
//
// Requests arrive as raw bytes. A parsed message can be a hundred times as large, so a request is
// parsed only after memory has been reserved for it.
#pragma once

#include "common/rpc/admission.h"
#include "common/rpc/connection_book.h"
#include "common/rpc/control_threads.h"
#include "common/rpc/grpc_convert.h"
#include "common/rpc/open_holds.h"
#include "common/wire/planes.h"
#include "proto/control_plane.grpc.pb.h"

namespace cistern {

// Every method as raw bytes.
#define CISTERN_OPEN(name, request, reply, length, effect, role) \
  v1::ControlPlane::WithRawCallbackMethod_##name <
#define CISTERN_CLOSE(name, request, reply, length, effect, role) >
// clang-format off
using RawControlService = CISTERN_CONTROL_METHODS(CISTERN_OPEN)
    v1::ControlPlane::WithRawCallbackMethod_HoldTerm<v1::ControlPlane::Service>
    CISTERN_CONTROL_METHODS(CISTERN_CLOSE);
// clang-format on
#undef CISTERN_OPEN
#undef CISTERN_CLOSE

// Threads: called on gRPC's threads. Borrows all of its arguments.
class ControlRpc final : public RawControlService {
 public:
  ControlRpc(cistern::ControlPlane* plane, ControlThreads* threads, OpenHolds* holds,
             ConnectionBook* book, const Admission* admission)
      : plane_(plane), threads_(threads), holds_(holds), book_(book), admission_(admission) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Bytes = grpc::ByteBuffer;
  using Plane = cistern::ControlPlane;

  template <class Request, class Reply>
  Reactor* Run(const char* name, Role role, CallLength length, Context* context, const Bytes* in,
               Bytes* out, absl::Status (Plane::*method)(const Request&, Reply*));

#define CISTERN_METHOD(name, request, reply, length, effect, role) \
  Reactor* name(Context* context, const Bytes* in, Bytes* out) override;
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD
  Reactor* HoldTerm(Context* context, const Bytes* in, Bytes* out) override;

  Plane* const plane_;
  ControlThreads* const threads_;
  OpenHolds* const holds_;
  ConnectionBook* const book_;
  const Admission* const admission_;
};

}  // namespace cistern
