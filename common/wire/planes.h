// The two planes as plain interfaces. A server implements them (server/service), a client over gRPC
// implements them (common/rpc/remote_server.h), and a worker holds only these: so embedded servers
// (same process, no socket) and a fleet are the same code to it.
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
#define CISTERN_METHOD(name, request, reply, length) \
  virtual absl::Status name(const v1::request&, v1::reply*) = 0;
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

  // A connection of the writer of `identity` opens and ends (HoldTerm): a writer whose connection
  // has ended is gone. EndHold is called once for every BeginHold that was OK.
  virtual absl::Status BeginHold(const v1::Identity& identity) {
    return absl::OkStatus();
  }
  virtual void EndHold(const v1::Identity& identity) {}
};

// Threads: any thread.
class DataPlane {
 public:
  using Done = std::function<void(absl::StatusOr<Frame>)>;
  virtual ~DataPlane() = default;
  // Sends `request` and calls `done` exactly once, perhaps before returning, with the reply frame
  // (never one whose status field is set: that becomes an error). kDeadlineExceeded after
  // `timeout`.
  virtual void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) = 0;
};

// One server, however it is reached. `name` is for people: "127.0.0.1:7700" or "embedded".
// Borrowed: the planes outlive every user.
struct ServerLink {
  std::string name;
  ControlPlane* control = nullptr;
  DataPlane* data = nullptr;
};

}  // namespace cistern
