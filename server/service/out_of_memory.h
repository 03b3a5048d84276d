// What a server does where memory runs out in the middle of a call: the call fails with
// kResourceExhausted, and the process lives.
#pragma once

#include <new>

#include "common/check.h"
#include "common/rpc/planes.h"
#include "server/service/node_state.h"

namespace cistern {

// The control plane behind it, with std::bad_alloc as a status.
//
// A call that changes tables may have changed a part of them. On a durable server they are given
// up: the next claim of an epoch brings back the last commit. Without files there is nothing to go
// back to, and the process stops rather than serve rows of two passes.
//
// Threads: any thread.
class OutOfMemoryPlane : public ControlPlane {
 public:
  OutOfMemoryPlane(NodeState* state, ControlPlane* plane) : state_(state), plane_(plane) {}

#define CISTERN_METHOD(name, request, reply, length)                  \
  absl::Status name(const v1::request& in, v1::reply* out) override { \
    try {                                                             \
      return plane_->name(in, out);                                   \
    } catch (const std::bad_alloc&) {                                 \
      return OutOfMemory(#name);                                      \
    }                                                                 \
  }
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

 private:
  static bool ChangesTables(absl::string_view name) {
    for (const char* changing : {"ClaimEpoch", "CommitPass", "CreateTables", "Load", "Clear",
                                 "Shrink", "UpdateAfterSave", "Hello"}) {
      if (name == changing) return true;
    }
    return false;
  }
  absl::Status OutOfMemory(const char* name) {
    if (state_->durable != nullptr) {
      if (ChangesTables(name)) state_->durable->GiveUpMemory();
    } else {
      CISTERN_CHECK(!ChangesTables(name) && "out of memory while tables were written");
    }
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": this server is out of memory; give it more, or use more servers"));
  }

  NodeState* const state_;
  ControlPlane* const plane_;
};

}  // namespace cistern
