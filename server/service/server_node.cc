#include "server/service/server_node.h"

#include <algorithm>

#include "common/base/machine_limits.h"
#include "server/service/server_metrics.h"

namespace cistern::server {
namespace {

int ThreadsOf(const ServerOptions& options) {
  if (options.threads > 0) return options.threads;
  return CoreCount();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerNode>> ServerNode::Create(const ServerOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map,
                           ShardMap::Create(options.shard_num, options.server_num));
  if (options.rank >= options.server_num) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " of ", options.server_num,
                     " servers does not exist: ranks are 0 to ", options.server_num - 1));
  }
  if (!(options.cache_rate >= 0 && options.cache_rate <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cache rate of ", options.cache_rate, ": expected 0 to 1"));
  }
  if (options.tiered() && !options.durable) {
    return WithOptions(
        absl::InvalidArgumentError("a memory limit needs durable commits, because rows that leave "
                                   "memory are read from their files"),
        {"cistern-server.data_dir"});
  }
  if (options.local_state && !options.durable) {
    return WithOptions(absl::InvalidArgumentError("a local state needs durable commits"),
                       {"cistern-server.data_dir", "cistern-server.durability"});
  }
  std::unique_ptr<ServerNode> node(new ServerNode(options, map));
  if (options.durable) CISTERN_RETURN_IF_ERROR(node->Recover(options));
  return node;
}

std::string ServerNode::MetricsText() {
  return ServerMetricsText(state_);
}

absl::Status ServerNode::Recover(const ServerOptions& options) {
  if (options.data_dir.empty()) {
    return WithOptions(
        absl::InvalidArgumentError("a durable server needs a folder for its commits"),
        {"cistern-server.data_dir"});
  }
  DurableState::Options durable;
  durable.files = options.files != nullptr ? options.files : &local_files_;
  durable.folder = StateFolderOf(options.data_dir);
  durable.local = options.local_state;
  durable.waits_for_copy = options.waits_for_copy;
  durable.cluster = options.cluster;
  durable.keep_commits = options.keep_commits;
  durable.compact_min_bytes = options.compact_min_bytes;
  durable.tier = options.tier();
  CISTERN_ASSIGN_OR_RETURN(
      std::unique_ptr<DurableState> state,
      DurableState::Open(durable, state_.store.shard_map(), options.rank, &state_.pool));
  CISTERN_RETURN_IF_ERROR(state_.stage.Attach(std::move(state)));
  CISTERN_ASSIGN_OR_RETURN(const TermClaim claim, state_.stage.durable()->claims().Newest());
  if (claim.term > 0) {
    CISTERN_RETURN_IF_ERROR(state_.guard.TakeGranted(claim.term));
    state_.lease.Restore(claim.secret, claim.writer);
  }
  state_.guard.set_durable();
  if (!state_.store.schema().tables().empty()) {
    const absl::MutexLock job(&state_.job_mutex);
    state_.FillCache("the first load");
  }
  return absl::OkStatus();
}

ServerNode::ServerNode(const ServerOptions& options, const ShardMap& map)
    : state_(map, options.rank, options.cluster, ThreadsOf(options), options.staged_limit_bytes,
             options.cache_rate, options.tiered()),
      data_(&state_),
      control_(&state_, options.files != nullptr ? options.files : &local_files_, options.data_dir),
      guarded_control_(&state_, &control_) {}

}  // namespace cistern::server
