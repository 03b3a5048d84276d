// What every control call of a server passes through on its way in and out: an exception becomes a
// status, and a refusal is logged.
#pragma once

#include "common/wire/planes.h"
#include "server/service/node_state.h"

namespace cistern {

// The control plane behind it. Nothing of ours throws, but containers do: std::bad_alloc, or
// std::length_error for a number that passed every check and was a lie.
//
// A call that changes tables may have changed a part of them by then. On a durable server they are
// given up: the next claim of an epoch brings back the last commit. Without files there is nothing
// to go back to, and the process ends with a message rather than serve rows of two passes.
//
// Threads: any thread.
class GuardedPlane : public ControlPlane {
 public:
  GuardedPlane(NodeState* state, ControlPlane* plane) : state_(state), plane_(plane) {}

#define CISTERN_METHOD(name, request, reply, length)                  \
  absl::Status name(const v1::request& in, v1::reply* out) override { \
    absl::Status status;                                              \
    try {                                                             \
      status = plane_->name(in, out);                                 \
    } catch (...) {                                                   \
      status = WhatWasThrown(#name);                                  \
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
  // The exception that is being handled, of a call of `name`, as a status.
  absl::Status WhatWasThrown(const char* name);

  NodeState* const state_;
  ControlPlane* const plane_;
};

// The exception that is being handled as a status: kResourceExhausted for memory, else kInternal.
absl::Status StatusOfException(const char* call);

}  // namespace cistern
