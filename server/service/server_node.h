// One server: the composition root of all its parts, without the socket.
//
// cistern-server serves it over gRPC (common/rpc/server_host.h); an embedded run holds one in its
// own process and calls it directly. Both use the same two planes:
//
//   CISTERN_ASSIGN_OR_RETURN(auto node, ServerNode::Create(ServerOptions()));
//   CISTERN_ASSIGN_OR_RETURN(auto client, ParameterClient::Connect({node->link("embedded")}, {}));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/wire/planes.h"
#include "server/commit/pass_cache.h"
#include "server/commit/tier.h"
#include "server/service/control_service.h"
#include "server/service/data_service.h"
#include "server/service/guarded_plane.h"
#include "server/service/node_state.h"

namespace cistern::server {

struct ServerOptions {
  std::string cluster = "cistern";  // servers and workers of one fleet use one name
  uint32_t rank = 0;                // 0 .. server_num - 1
  uint32_t server_num = 1;
  uint32_t shard_num = 64;  // of every table, over the whole fleet
  std::string data_dir;     // for save and load; empty: they are refused
  // Commits survive this process: they are in data_dir/state, which all servers share.
  bool durable = false;
  bool local_state = false;  // durable: the folder is this server's alone (durable_state.h)
  // durable: a commit waits until a copying program has this server's files (AwaitCopy).
  bool waits_for_copy = false;
  uint32_t keep_commits = 3;  // durable: number of newest commits that stay readable
  uint64_t compact_min_bytes = uint64_t{1}
                               << 20;  // durable: deltas below this are not merged alone
  FileSystem* files = nullptr;         // outlives the node; null: the machine's own
  int threads = 0;                     // for commit, save and load; 0: one per core
  uint64_t staged_limit_bytes = uint64_t{8} << 30;  // of an open pass
  // Durable: memory for rows, what finds those in files, and the pushes of a pass; other rows are
  // read from the files of commits. 0: all rows are in memory.
  uint64_t memory_limit_bytes = 0;
  // Durable: memory by the rows of passes (pass_cache.h) in place of the limit, table by table; a
  // table without one stays whole.
  std::vector<PassCacheOptions> pass_caches = {};

  // Whether rows may be in files alone.
  Tier::Options tier() const { return {memory_limit_bytes, pass_caches}; }
  bool tiered() const { return Tier::IsUsed(tier()); }
  // The share of the rows of each ctr table in the memory cache (memory_cache.h), 0 to 1; 0: no
  // cache.
  double cache_rate = 0;
};

// Threads: any thread.
class ServerNode {
 public:
  // If durable, the tables hold the newest commit when it returns. kInvalidArgument if rank,
  // server_num and shard_num are inconsistent, cache_rate is out of range, or a durable server has
  // no data_dir; kFailedPrecondition and kDataLoss as DurableState::Open and Recover.
  static absl::StatusOr<std::unique_ptr<ServerNode>> Create(const ServerOptions& options);

  ControlPlane& control() { return guarded_control_; }
  DataPlane& data() { return data_; }
  // name: for messages, e.g. "embedded".
  ServerLink link(const std::string& name) { return {name, &guarded_control_, &data_}; }

  // Logs and counts a call that was refused before it reached a plane, as one that a plane refuses.
  void NoteRefusal(absl::string_view method, const absl::Status& status) {
    state_.refusals.Note(method, status);
    state_.counters.CountRefusal(status);
  }

  // The figures of this server for Prometheus (docs/monitoring.md). Waits for no long job.
  std::string MetricsText();

  // Waits until no files are being merged; returns at once if commits are not durable.
  void AwaitCompaction() {
    if (state_.stage.durable() != nullptr) state_.stage.durable()->AwaitCompaction();
  }

 private:
  ServerNode(const ServerOptions& options, const ShardMap& map);

  absl::Status Recover(const ServerOptions& options);

  LocalFileSystem local_files_;
  NodeState state_;
  DataService data_;
  ControlService control_;
  GuardedPlane guarded_control_;
};

}  // namespace cistern::server
