// The two planes as plain interfaces. A server implements them (server/service), a client over gRPC
// implements them (common/rpc/remote_server.h), and a worker holds only these: so embedded servers
// (same process, no socket) and a fleet are the same code to it.
#pragma once

#include <functional>

#include "absl/time/time.h"
#include "common/rpc/frame.h"
#include "common/status.h"
#include "proto/control_plane.pb.h"

namespace cistern {

// Threads: any thread.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;
  virtual absl::Status Hello(const v1::HelloRequest&, v1::HelloReply*) = 0;
  virtual absl::Status ClaimEpoch(const v1::ClaimEpochRequest&, v1::PassReply*) = 0;
  virtual absl::Status CreateTables(const v1::CreateTablesRequest&, v1::CreateTablesReply*) = 0;
  virtual absl::Status BeginPass(const v1::PassRequest&, v1::PassReply*) = 0;
  virtual absl::Status SealPass(const v1::SealPassRequest&, v1::PassReply*) = 0;
  virtual absl::Status PreparePass(const v1::PassRequest&, v1::PassReply*) = 0;
  virtual absl::Status CommitPass(const v1::PassRequest&, v1::PassReply*) = 0;
  virtual absl::Status AbortPass(const v1::PassRequest&, v1::PassReply*) = 0;
  virtual absl::Status Save(const v1::SaveRequest&, v1::SaveReply*) = 0;
  virtual absl::Status Load(const v1::LoadRequest&, v1::LoadReply*) = 0;
  virtual absl::Status Clear(const v1::ClearRequest&, v1::PassReply*) = 0;
  virtual absl::Status Stats(const v1::StatsRequest&, v1::StatsReply*) = 0;
  virtual absl::Status GetRow(const v1::GetRowRequest&, v1::GetRowReply*) = 0;
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
