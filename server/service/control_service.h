// The control plane's handlers: plain functions from request to reply, no socket.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "common/rpc/planes.h"
#include "server/service/node_state.h"

namespace cistern {

// Threads: any thread. Prepare, Commit, Save, Load, Clear and Stats with digests take as long as
// the tables are large; the rest return at once.
class ControlService : public ControlPlane {
 public:
  // data_dir: where Save and Load work; empty: they are refused.
  ControlService(NodeState* state, std::string data_dir);

  absl::Status Hello(const v1::HelloRequest&, v1::HelloReply*) override;
  absl::Status ClaimEpoch(const v1::ClaimEpochRequest&, v1::PassReply*) override;
  absl::Status CreateTables(const v1::CreateTablesRequest&, v1::CreateTablesReply*) override;
  absl::Status BeginPass(const v1::PassRequest&, v1::PassReply*) override;
  absl::Status SealPass(const v1::SealPassRequest&, v1::PassReply*) override;
  absl::Status PreparePass(const v1::PassRequest&, v1::PassReply*) override;
  absl::Status CommitPass(const v1::PassRequest&, v1::PassReply*) override;
  absl::Status AbortPass(const v1::PassRequest&, v1::PassReply*) override;
  absl::Status Save(const v1::SaveRequest&, v1::SaveReply*) override;
  absl::Status Load(const v1::LoadRequest&, v1::LoadReply*) override;
  absl::Status Clear(const v1::ClearRequest&, v1::PassReply*) override;
  absl::Status Stats(const v1::StatsRequest&, v1::StatsReply*) override;
  absl::Status GetRow(const v1::GetRowRequest&, v1::GetRowReply*) override;

 private:
  // Runs one verb of a pass for a caller whose identity is right, and says which pass is committed.
  absl::Status InPass(const v1::Identity& identity, v1::PassReply* reply,
                      const std::function<absl::Status()>& verb);
  // Runs `replace` for a caller whose identity passes `check`, while every other call is told to
  // come back; the caller holds job_mutex.
  absl::Status Replacing(const std::function<absl::Status()>& check,
                         const std::function<absl::Status()>& replace)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->job_mutex);
  // data_dir/name. kFailedPrecondition without a data_dir; kInvalidArgument for an unsafe name.
  absl::StatusOr<std::string> Folder(const std::string& name) const;

  NodeState* const state_;
  const std::string data_dir_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace cistern
