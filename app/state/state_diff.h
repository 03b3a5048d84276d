// Compares the rows of two commits or saved models, bit by bit, without servers.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "server/table/table_diff.h"

namespace cistern::app {

struct DiffOptions {
  std::string a, b;      // STATE, STATE@COMMIT, or the folder of a saved model
  uint64_t rows = 5;     // example keys of each kind
  uint64_t threads = 0;  // 0: one per core
};

struct DiffResult {
  struct Side {
    std::string name;  // "saved/state, commit 12"
    PassId pass = 0;
  };
  struct Table {
    std::string name, kind;        // kind: "sparse" or "dense"
    server::TableDifference rows;  // from A to B; at most DiffOptions::rows keys of each kind
    std::string not_compared;      // the reason; empty: the tables were compared
  };
  Side a, b;
  std::string schema_difference;  // the first one, in words; empty: none
  std::vector<Table> tables;      // sparse before dense, in the order of A and then of B

  bool same() const;
};

// Memory holds a sixteenth of the rows of both at a time, or all rows if their shard_num differs.
//
// A difference is a result. kInvalidArgument, with a fix: A or B is neither a commit nor a saved
// model. Errors of kind kBadCheckpoint: one of them is corrupt. kCancelled: calls.stop was set.
absl::StatusOr<DiffResult> Diff(const DiffOptions& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const DiffResult& result);

}  // namespace cistern::app
