// The control plane's handlers: plain functions from request to reply, no socket.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "common/wire/planes.h"
#include "server/service/file_service.h"
#include "server/service/node_state.h"

namespace cistern::server {

// Threads: any thread. The duration of Prepare, Commit, Save, Load, Clear and Stats with digests
// grows with the tables; other calls return at once.
class ControlService : public ControlPlane {
 public:
  // files: the disk; outlives this. data_dir: where Save and Load work; if empty, both are refused.
  ControlService(NodeState* state, FileSystem* files, std::string data_dir);

#define CISTERN_METHOD(name, request, reply, length, effect, role) \
  absl::Status name(const v1::request&, v1::reply*) override;
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD
  absl::Status BeginHold(const v1::HoldTermRequest& request) override {
    return state_->lease.BeginHold(request.identity().secret(), request.claims());
  }
  void EndHold(const v1::HoldTermRequest& request) override {
    state_->lease.EndHold(request.identity().secret());
  }

 private:
  // The first part of a claim, before older writers are fenced: checks that it may be granted and,
  // on a durable server, records the grant on disk.
  absl::Status Grant(const TermClaim& claim);
  // Runs one call about a pass for its writer, and reports which pass is committed.
  absl::Status InPass(const v1::Identity& identity, v1::PassReply* reply,
                      const std::function<absl::Status()>& verb);
  // Brings memory to the newest commit on disk; meanwhile every other call returns
  // kUnavailable.
  absl::Status Recover() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->job_mutex);
  // Recovers if a commit was decided that has not reached this server.
  absl::Status CatchUp();
  // Runs `change`, which modifies committed rows in place, if `identity` is this server's. changes:
  // the number of changes that the caller has made before. On a durable server the change counts
  // once the caller has committed the next pass.
  absl::Status ChangeInPlace(const v1::Identity& identity, uint64_t changes,
                             const std::function<absl::Status()>& change);

  NodeState* const state_;
  FileService files_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace cistern::server
