// Checks every byte of commits, or of a saved model, without servers.
//
// A commit: its manifest, every block of its files, and the digests of its shards and tables,
// recomputed from the rows. A saved model: its json files, every row, and the hash of each file,
// with an eighth of the rows in memory at a time.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "common/base/types.h"

namespace cistern::app {

struct VerifyOptions {
  std::string path;      // a data_dir of servers or the state folder in it; or a saved model
  uint64_t commit = 0;   // of a state; 0: the newest
  bool all = false;      // every commit of a state
  uint64_t threads = 0;  // 0: one per core
};

struct VerifiedTable {
  std::string name;
  uint64_t rows = 0, digest = 0;
};

struct VerifiedCommit {
  uint64_t commit = 0;
  bool removed = false;  // by running servers, during the check; then nothing else is known
  PassId pass = 0;
  int files = 0;
  uint64_t bytes = 0;
  bool good = false;
  std::optional<uint32_t> server;     // of a local state: whose files alone were checked
  std::vector<VerifiedTable> tables;  // as its manifest records them
};

struct VerifiedModel {
  PassId pass = 0;
  std::vector<VerifiedTable> tables;  // as its rows are; empty if it has faults
};

struct VerifyResult {
  std::string path;
  bool is_state = false;
  std::vector<VerifiedCommit> commits;  // of a state
  std::vector<VerifiedModel> models;    // of a saved model: one, or none if it has no readable json
  std::vector<absl::Status> faults;     // each file, block, line or table that is not as recorded

  // OK without faults. kDataLoss of kind kBadCheckpoint, with a fix: the worst fault.
  // kPermissionDenied: nothing but files that this user may not read.
  absl::Status outcome() const;
};

// Faults are a result. kInvalidArgument, with a fix: the path holds neither commits nor a model, or
// has no such commit. kCancelled: calls.stop was set.
absl::StatusOr<VerifyResult> Verify(const VerifyOptions& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const VerifyResult& result);

}  // namespace cistern::app
