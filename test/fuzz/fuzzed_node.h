// A server in this process with three small tables, one committed pass and a writer whose secret is
// known: what the targets of rpc_targets.h call. Its disk is in memory.
#pragma once

#include <memory>
#include <vector>

#include "server/service/server_node.h"
#include "test/support/memory_file_system.h"

namespace cistern {

// Threads: one at a time.
class FuzzedNode {
 public:
  static constexpr uint64_t kSecret = 0x5ec7e7;

  enum class Kind { kInMemory, kDurable, kEmpty };  // kEmpty: no tables, no claim, no files
  explicit FuzzedNode(Kind kind);

  ControlPlane& control() { return node_->control(); }
  // The error of the reply, or OK.
  absl::Status Call(FrameKind kind, Frame request);

  // What a caller learns from Hello, with the writer's secret.
  v1::Identity identity();
  uint64_t committed();
  // Digests of all tables: what no refused call may change.
  std::vector<uint64_t> Digests();

  // Makes a manifest one that follows the newest, as far as its place in the row goes.
  void FollowNewest(v1::Manifest* manifest);

  // The calls of a writer that commits the next pass with one push, in order, as the node has them
  // answered: for the corpus.
  struct Step {
    std::string verb;
    std::unique_ptr<google::protobuf::Message> request;
  };
  std::vector<Step> CommitPass();
  // A push of `table` (or, dense, its rows), of worker 0.
  Frame PushFrame(bool dense, uint64_t sequence);

 private:
  void Create(Kind kind);
  v1::Manifest NextManifest(const v1::PreparedPart& part);

  MemoryFileSystem disk_;
  std::unique_ptr<ServerNode> node_;
};

// The tables of every FuzzedNode.
v1::Schema FuzzedSchema();

}  // namespace cistern
