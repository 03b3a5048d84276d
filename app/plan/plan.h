// Estimates the memory and disk that a model needs on servers and workers, before anything starts.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "worker/model/config/model_config.h"
#include "worker/model/graph/model_summary.h"

namespace cistern::app {

struct PlanOptions {
  std::map<std::string, uint64_t> rows;  // expected rows, by table; of the others: PlannedTable
  uint64_t servers = 1;                  // that share the rows
  uint64_t workers = 1;
  uint64_t memory_limit_mb = 0;  // of each server; 0: every row stays in memory
};

struct PlannedTable {
  model::TableSummary table;
  uint64_t rows = 0;
  bool given = false;  // by PlanOptions::rows
  // Where `rows` comes from otherwise: what the model file declares ("slot_size_array",
  // "max_vocabulary_size_per_gpu"); "training data": the distinct keys of its first 2,000,000
  // samples; "a guess".
  std::string source;
  std::string assumption;  // a sentence, if `rows` is neither given nor declared

  uint64_t server_bytes() const;
  uint64_t commit_bytes() const;
  uint64_t save_bytes() const;
};

struct PlannedWorker {
  // Bytes of the pass in training, the next one, and one in commit or evaluation.
  uint64_t passes = 0;
  uint64_t step = 0, dense = 0;
  uint64_t pass_keys = 0;  // approximate number of keys that fit a pass
  uint64_t total() const { return passes + step + dense; }
};

// A server with a memory limit (docs/sizing.md, "Less memory than rows").
struct PlannedLimit {
  uint64_t limit = 0;          // bytes, as are the others
  uint64_t finding_rows = 0;   // filters, and first keys of blocks, of rows in files
  uint64_t pushes = 0;         // of the largest pass
  uint64_t rows = 0;           // what is left for rows in memory; 0: `least` is above the limit
  uint64_t process = 0;        // what the process takes in all
  double share_in_memory = 0;  // of the rows
  uint64_t least() const { return finding_rows + pushes; }
};

struct PlanResult {
  std::string model;  // the path of its file
  std::vector<PlannedTable> tables;
  uint64_t dense_bytes = 0;
  uint64_t servers = 1;
  uint64_t server_bytes = 0, commit_bytes = 0;  // of all servers; of a base
  std::optional<PlannedLimit> memory_limit;
  PlannedWorker worker;
  uint64_t batchsize = 0;
  std::vector<std::string> warnings;
};

// Reads training data where the model file declares no rows. kInvalidArgument: training would
// refuse the model; the model has no table of that name; no server. kCancelled: calls.stop was set.
absl::StatusOr<PlanResult> Plan(const model::ModelConfig& config, const PlanOptions& options,
                                const JobCalls& calls);

nlohmann::ordered_json JsonOf(const PlanResult& plan);

}  // namespace cistern::app
