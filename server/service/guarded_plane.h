// The outer layer of every control call of a server: refuses requests of newer versions, turns an
// exception into a status, counts the call, and logs refusals.
#pragma once

#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/wire/call_length.h"
#include "common/wire/planes.h"
#include "server/service/node_state.h"

namespace cistern::server {

// kFailedPrecondition if the message, or one inside it, has a field without a name in this
// version's proto files; the error names message and field number.
absl::Status CheckFieldsAreKnown(const google::protobuf::Message& message);

// Wraps the control plane. Our own code does not throw, but containers do: std::bad_alloc, or
// std::length_error for a number that passed every check but was false.
//
// A call that changes tables may have changed a part of them before it threw. A durable server then
// gives up its memory, and the next claim of a term restores the last commit. A server without
// files has no state to restore, so the process ends with a message rather than serve rows of two
// passes.
//
// A request with a field that this server does not know comes from a newer version, and would be
// obeyed in part; a manifest would be written without what its writer believes is in it. Such a
// request is refused whole, unless it only looks: a newer `cistern status` may ask for more than an
// older server can tell.
//
// Threads: any thread.
class GuardedPlane : public ControlPlane {
 public:
  GuardedPlane(NodeState* state, ControlPlane* plane) : state_(state), plane_(plane) {}

#define CISTERN_METHOD(name, request, reply, length, effect, role)                   \
  absl::Status name(const v1::request& in, v1::reply* out) override {                \
    absl::Status status;                                                             \
    const absl::Time begin = absl::Now();                                            \
    try {                                                                            \
      if (CallLength::length != CallLength::kLook) status = CheckFieldsAreKnown(in); \
      if (status.ok()) status = plane_->name(in, out);                               \
    } catch (...) {                                                                  \
      status = WhatWasThrown(#name, CallEffect::effect);                             \
    }                                                                                \
    state_->counters.CountCall(ServerMethod::k##name, status, absl::Now() - begin);  \
    state_->refusals.Note(#name, status);                                            \
    return status;                                                                   \
  }
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD
  absl::Status BeginHold(const v1::HoldTermRequest& request) override {
    return plane_->BeginHold(request);
  }
  void EndHold(const v1::HoldTermRequest& request) override {
    plane_->EndHold(request);
  }

 private:
  // The current exception of call `name`, as a status.
  absl::Status WhatWasThrown(const char* name, CallEffect effect);

  NodeState* const state_;
  ControlPlane* const plane_;
};

// Converts the current exception to a status: kResourceExhausted for memory, else kInternal.
absl::Status StatusOfException(const char* call);

}  // namespace cistern::server
