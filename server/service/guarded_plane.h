// The outer layer of every control call of a server: turns an exception into a status, and logs
// refusals.
#pragma once

#include "common/wire/call_length.h"
#include "common/wire/planes.h"
#include "server/service/node_state.h"

namespace cistern {

// Wraps the control plane. Our own code does not throw, but containers do: std::bad_alloc, or
// std::length_error for a number that passed every check but was false.
//
// A call that changes tables may have changed a part of them before it threw. A durable server then
// gives up its memory, and the next claim of a term restores the last commit. A server without
// files has no state to restore, so the process ends with a message rather than serve rows of two
// passes.
//
// Threads: any thread.
class GuardedPlane : public ControlPlane {
 public:
  GuardedPlane(NodeState* state, ControlPlane* plane) : state_(state), plane_(plane) {}

#define CISTERN_METHOD(name, request, reply, length, effect, role)    \
  absl::Status name(const v1::request& in, v1::reply* out) override { \
    absl::Status status;                                              \
    try {                                                             \
      status = plane_->name(in, out);                                 \
    } catch (...) {                                                   \
      status = WhatWasThrown(#name, CallEffect::effect);              \
    }                                                                 \
    state_->refusals.Note(#name, status);                             \
    return status;                                                    \
  }
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD
  absl::Status BeginHold(const v1::Identity& identity) override {
    return plane_->BeginHold(identity);
  }
  void EndHold(const v1::Identity& identity) override {
    plane_->EndHold(identity);
  }

 private:
  // The current exception of call `name`, as a status.
  absl::Status WhatWasThrown(const char* name, CallEffect effect);

  NodeState* const state_;
  ControlPlane* const plane_;
};

// Converts the current exception to a status: kResourceExhausted for memory, else kInternal.
absl::Status StatusOfException(const char* call);

}  // namespace cistern
