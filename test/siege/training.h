// The training that goes on while its servers are attacked: a small model on planted data, trained
// by real cistern-worker processes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/session/process.h"
#include "common/base/status.h"

namespace cistern {

// Rows and digest of each table of a fleet, by name: equal ones mean equal rows.
using FleetDigests = std::map<std::string, std::pair<uint64_t, uint64_t>>;

// Asks the servers at `addresses` ("host:port,host:port"). Tries again while they are busy.
absl::StatusOr<FleetDigests> DigestsOf(const std::string& addresses);
std::string DigestText(const FleetDigests& digests);

// Writes data and model to `folder`: <folder>/model.json.
absl::Status MakeTrainingFiles(const std::string& folder);

// One training run: workers 0 .. n-1, each a process.
//
// Threads: one at a time.
class Training {
 public:
  struct Options {
    std::string programs;  // folder of the programs
    std::string folder;    // of MakeTrainingFiles; the run goes to <folder>/<name>
    std::string name = "run";
    std::string servers;  // addresses
    uint64_t epochs = 1;  // an epoch is a pass is a commit
    int workers = 1;
    std::string peers;   // several workers: where they meet
    int only_rank = -1;  // starts this worker alone; -1: all
    std::vector<std::string> flags;
  };
  static absl::StatusOr<std::unique_ptr<Training>> Start(const Options& options);

  // Whether all workers still run.
  bool Running();
  // Epochs whose commit metrics.jsonl has.
  uint64_t epochs() const;
  // Waits until `count` epochs are committed; kInternal with the end of the log if the run ends
  // before that, kDeadlineExceeded if it takes longer than `limit`.
  absl::Status AwaitEpochs(uint64_t count, absl::Duration limit);
  // Waits until all workers have ended; their error if one ended with another code than 0.
  absl::Status Finish(absl::Duration limit);

 private:
  explicit Training(const Options& options) : options_(options) {}
  std::string LogEnd(size_t worker) const;

  const Options options_;
  std::vector<std::unique_ptr<ChildProcess>> workers_;
};

}  // namespace cistern
