// The data plane of a server: one frame in, one frame out, no socket.
#pragma once

#include "common/base/status.h"
#include "common/wire/planes.h"
#include "server/service/node_state.h"

namespace cistern::server {

// HOT PATH: every pulled and pushed row passes through here. No logging, and no work per key except
// the table's.
//
// Threads: any thread.
class DataService : public DataPlane {
 public:
  explicit DataService(NodeState* state) : state_(state) {}

  // Handles the frame on the calling thread and logs a refusal; `timeout` is the socket's business.
  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override;

  // Answers one request. An exception becomes a status: committed state was not touched. Errors:
  // those of the identity check and of CommitState; kInvalidArgument for a malformed frame, a
  // stride that differs from the table's, or a body that does not match its hash; kNotFound for an
  // unknown table; kOutOfRange for keys or rows that this server does not own.
  absl::StatusOr<Frame> Handle(FrameKind kind, const Frame& request);

 private:
  absl::StatusOr<Frame> Pull(const FrameHeader& header, FrameReader& body);
  absl::StatusOr<Frame> Push(const FrameHeader& header, FrameReader& body);
  absl::StatusOr<Frame> PullDense(const FrameHeader& header);
  absl::StatusOr<Frame> PushDense(const FrameHeader& header, FrameReader& body);
  absl::StatusOr<Frame> Scan(const FrameHeader& header);

  NodeState* const state_;
};

}  // namespace cistern::server
