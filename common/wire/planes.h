// The control plane and the data plane as plain interfaces. A server implements them
// (server/service), and so does the gRPC client (common/rpc/remote_server.h). A worker uses only
// these interfaces, so the same code works with embedded servers (same process, no socket) and with
// a fleet.
#pragma once

#include <functional>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/wire/control_methods.h"
#include "common/wire/frame.h"
#include "proto/control_plane.pb.h"

namespace cistern {

// Threads: any thread.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;
#define CISTERN_METHOD(name, request, reply, length, effect, role) \
  virtual absl::Status name(const v1::request&, v1::reply*) = 0;
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

  // Called when a connection of the writer, or of a caller that is about to claim, opens and ends
  // (HoldTerm): a writer is at work while one is open. EndHold is called once for every successful
  // BeginHold, with the same request.
  virtual absl::Status BeginHold(const v1::HoldTermRequest&) {
    return absl::OkStatus();
  }
  virtual void EndHold(const v1::HoldTermRequest&) {}
};

// Threads: any thread.
class DataPlane {
 public:
  using Done = std::function<void(absl::StatusOr<Frame>)>;
  virtual ~DataPlane() = default;
  // Sends `request` and calls `done` exactly once, possibly before returning, with the reply frame.
  // A reply whose status field is set is passed as an error instead. kDeadlineExceeded after
  // `timeout`.
  virtual void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) = 0;
};

// One server, embedded or remote. name: for messages, e.g. "127.0.0.1:7700" or "embedded". The
// planes are borrowed and outlive every user.
struct ServerLink {
  std::string name;
  ControlPlane* control = nullptr;
  DataPlane* data = nullptr;
};

}  // namespace cistern
