// A server for the targets of rpc_targets.h. It runs in this process, with three small tables, one
// committed pass, a writer with a known secret, and a file system in memory.
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

  // The identity from Hello, plus the writer's secret.
  v1::Identity identity();
  uint64_t committed();
  // The digests of all tables. A refused call must not change them.
  std::vector<uint64_t> Digests();

  // Sets the fields of a manifest that make it the successor of the newest one.
  void FollowNewest(v1::Manifest* manifest);

  // A control-plane call, for the corpus.
  struct Step {
    std::string verb;
    std::unique_ptr<google::protobuf::Message> request;
  };
  // Commits the next pass as the writer does, with one push per table kind. Returns the calls.
  std::vector<Step> CommitPass();
  // A push from worker 0: rows of table 0 or, if `dense`, of the dense table.
  Frame PushFrame(bool dense, uint64_t sequence);

 private:
  void Create(Kind kind);
  v1::Manifest NextManifest(const v1::PreparedPart& part);

  MemoryFileSystem disk_;
  std::unique_ptr<server::ServerNode> node_;
};

// The tables of every FuzzedNode.
v1::Schema FuzzedSchema();

}  // namespace cistern
