// Rewrites a commit on disk into a new state: for another number of servers or shards, or with
// other rules for saves and shrinks.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "common/base/status.h"
#include "proto/schema.pb.h"

namespace cistern::app {

struct ReshardOptions {
  std::string state;                       // a data_dir, or the state folder in it
  std::string out;                         // the new data_dir
  uint64_t commit = 0;                     // 0: the newest
  uint64_t server_num = 0, shard_num = 0;  // 0: unchanged
  uint64_t threads = 0;                    // 0: one per core
  std::vector<std::string> set;            // ChangeThresholds
};

struct ReshardResult {
  std::string path;  // of the new state folder
  uint64_t commit = 0, pass = 0, server_num = 0, shard_num = 0, rows = 0, files = 0, bytes = 0;
  bool was_there = false;  // an earlier call finished this; nothing was written
};

// The old state is only read. The new one appears whole or not at all: after an interruption,
// repeat the call. Memory holds the rows of one new server at a time.
//
// kInvalidArgument, with a fix: `state` holds no commits, there is no such commit, or numbers or
// rules that do not fit. kAlreadyExists, with a fix: `out` holds other commits, or is `state`.
// kFailedPrecondition: a server uses `out`. kBadCheckpoint: corrupt files.
absl::StatusOr<ReshardResult> ReshardState(const ReshardOptions& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const ReshardResult& result);

// Applies "TABLE.NAME=NUMBER" to the ctr tables of a schema. NAME is a rule that only saves and
// shrinks read (configuration.md). kInvalidArgument for any other, with a list of those that exist.
absl::Status ChangeThresholds(const std::vector<std::string>& changes, v1::Schema* schema);

}  // namespace cistern::app
