// Computes the requests of a serving log again, each with the model of its commit.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "app/job_calls.h"
#include "common/base/status.h"

namespace cistern::app {

struct VerifyOnlineOptions {
  std::string log;       // of the requests (serve/server/request_log.h)
  std::string state;     // the data_dir of servers, or the folder of a run
  std::string serving;   // the folder that was served; empty: the one that the log names
  uint64_t threads = 0;  // that read; 0: one per core
};

struct VerifyOnlineResult {
  uint64_t requests = 0, samples = 0, differences = 0;
  std::set<uint64_t> commits;         // that were computed again
  std::set<uint64_t> missing;         // that the state no longer has: not checked
  std::set<uint64_t> without_commit;  // versions of saved models, which name no commit: not checked
  std::string first;                  // the first difference, in words

  // kFailedPrecondition: a prediction differs, or none could be computed again.
  absl::Status outcome() const;
};

// Differences are a result. kInvalidArgument: no log, or no folder that was served. kDataLoss: a
// line of the log that is none. kCancelled: calls.stop was set.
absl::StatusOr<VerifyOnlineResult> VerifyOnline(const VerifyOnlineOptions& options,
                                                const JobCalls& calls);

nlohmann::ordered_json JsonOf(const VerifyOnlineResult& result);

}  // namespace cistern::app
