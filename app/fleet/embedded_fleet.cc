#include "app/fleet/embedded_fleet.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/machine_limits.h"
#include "server/service/server_node.h"

namespace cistern::app {
namespace {

// client_ borrows the planes of nodes_, and is destroyed first.
class EmbeddedSession : public FleetSession {
 public:
  EmbeddedSession(std::vector<std::unique_ptr<server::ServerNode>> nodes,
                  std::unique_ptr<ParameterClient> client)
      : nodes_(std::move(nodes)), client_(std::move(client)) {}
  ParameterClient& client() override { return *client_; }

 private:
  const std::vector<std::unique_ptr<server::ServerNode>> nodes_;
  const std::unique_ptr<ParameterClient> client_;
};

absl::Status CheckServerNum(uint64_t server_num) {
  const uint32_t shard_num = server::ServerOptions().shard_num;
  if (server_num >= 1 && server_num <= shard_num) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(server_num, ": expected 1 to ", shard_num, ", the number of shards of a table"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FleetSession>> StartEmbeddedFleet(const FleetOptions& fleet,
                                                                 const ClientOptions& options,
                                                                 const std::string& state_root) {
  const uint64_t server_num = fleet.embedded_servers;
  CISTERN_RETURN_IF_ERROR(CheckServerNum(server_num));
  std::vector<std::unique_ptr<server::ServerNode>> nodes;
  std::vector<ServerLink> links;
  for (uint32_t rank = 0; rank < server_num; ++rank) {
    server::ServerOptions server;
    server.cluster = options.cluster;
    server.rank = rank;
    server.server_num = static_cast<uint32_t>(server_num);
    server.data_dir = state_root;
    server.durable = !state_root.empty();
    server.memory_limit_bytes = static_cast<uint64_t>(std::ceil(fleet.memory_limit_mb * (1 << 20)));
    server.pass_caches = fleet.pass_caches;
    // This process makes the passes and pushes them, so their memory limits are limit enough.
    server.staged_limit_bytes = std::max(server.staged_limit_bytes, MemoryBytes());
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<server::ServerNode> node,
                             server::ServerNode::Create(server));
    links.push_back(node->link(absl::StrCat("embedded server ", rank)));
    nodes.push_back(std::move(node));
  }
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ParameterClient> client,
                           ParameterClient::Connect(std::move(links), options));
  return std::make_unique<EmbeddedSession>(std::move(nodes), std::move(client));
}

}  // namespace cistern::app
