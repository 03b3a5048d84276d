// One server: the composition root of everything a server is, without the socket around it.
//
// cistern-server puts it behind gRPC (common/rpc/server_host.h); an embedded run holds one in its
// own process and calls it directly. Both go through the same two planes:
//
//   CISTERN_ASSIGN_OR_RETURN(auto node, ServerNode::Create(ServerOptions()));
//   CISTERN_ASSIGN_OR_RETURN(auto client, ParameterClient::Connect({node->link("embedded")}, {}));
#pragma once

#include <memory>
#include <string>

#include "common/file_system.h"
#include "common/rpc/planes.h"
#include "common/status.h"
#include "server/service/control_service.h"
#include "server/service/data_service.h"
#include "server/service/node_state.h"

namespace cistern {

struct ServerOptions {
  std::string cluster = "cistern";  // servers and workers of one fleet use one name
  uint32_t rank = 0;                // 0 .. server_num - 1
  uint32_t server_num = 1;
  uint32_t shard_num = 64;                          // of every table, over the whole fleet
  std::string data_dir;                             // for save and load; empty: they are refused
  int threads = 0;                                  // for commit, save and load; 0: one a core
  uint64_t staged_limit_bytes = uint64_t{8} << 30;  // of an open pass
  // The disk; not owned, outlives the node. Null: the machine's own.
  FileSystem* files = nullptr;
};

// Threads: any thread.
class ServerNode : public DataPlane {
 public:
  // kInvalidArgument if rank, server_num and shard_num do not fit each other.
  static absl::StatusOr<std::unique_ptr<ServerNode>> Create(const ServerOptions& options);

  ControlPlane& control() { return control_; }
  DataPlane& data() { return *this; }
  // name: for messages, e.g. "embedded".
  ServerLink link(const std::string& name) { return ServerLink{name, &control_, this}; }

  // Handles the frame on the calling thread; `timeout` is the socket's business.
  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override {
    done(data_.Handle(kind, request));
  }

 private:
  ServerNode(const ServerOptions& options, const ShardMap& map);

  LocalFileSystem local_files_;
  NodeState state_;
  DataService data_;
  ControlService control_;
};

}  // namespace cistern
