#include "server/service/server_node.h"

#include <algorithm>
#include <thread>

namespace cistern {
namespace {

int ThreadsOf(const ServerOptions& options) {
  if (options.threads > 0) return options.threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
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
  return std::unique_ptr<ServerNode>(new ServerNode(options, map));
}

ServerNode::ServerNode(const ServerOptions& options, const ShardMap& map)
    : state_(map, options.rank, options.cluster, ThreadsOf(options), options.staged_limit_bytes),
      data_(&state_),
      control_(&state_, options.files != nullptr ? options.files : &local_files_,
               options.data_dir) {}

}  // namespace cistern
