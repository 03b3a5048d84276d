// The training that runs while its servers are attacked: a small model on synthetic data, trained
// by real cistern-worker processes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "app/fleet/process.h"
#include "common/base/status.h"
#include "common/rpc/remote_server.h"

namespace cistern {

// Row count and digest of each table of a fleet, by name; equal digests mean equal rows.
using FleetDigests = std::map<std::string, std::pair<uint64_t, uint64_t>>;

// Reads the digests from the servers at `addresses` ("host:port,host:port"). Retries while they are
// busy.
absl::StatusOr<FleetDigests> DigestsOf(const std::string& addresses,
                                       const RemoteOptions& options = {});
std::string DigestText(const FleetDigests& digests);

// Writes the data and the model file, <folder>/model.json.
absl::Status MakeTrainingFiles(const std::string& folder);

// One training run: workers 0 .. n-1, one process each.
//
// Threads: one at a time.
class Training {
 public:
  struct Options {
    std::string programs;  // folder of the programs
    std::string folder;    // of MakeTrainingFiles; the run's output folder is <folder>/<name>
    std::string name = "run";
    std::string servers;  // addresses
    uint64_t epochs = 1;  // each epoch is one pass and one commit
    int workers = 1;
    std::string peers;   // several workers: the address of worker 0
    int only_rank = -1;  // starts this worker alone; -1: all
    std::vector<std::string> flags;
  };
  static absl::StatusOr<std::unique_ptr<Training>> Start(const Options& options);

  // Whether all workers still run.
  bool Running();
  // The number of epochs whose commit is in metrics.jsonl.
  uint64_t epochs() const;
  // Waits until `count` epochs are committed; kInternal with the end of the log if the run ends
  // earlier, kDeadlineExceeded after `limit`.
  absl::Status AwaitEpochs(uint64_t count, absl::Duration limit);
  // Ends all workers; epochs() stays what they have reached.
  void End() { workers_.clear(); }
  // Waits until all workers have ended; an error if one did not exit with code 0.
  absl::Status Finish(absl::Duration limit);

 private:
  explicit Training(const Options& options) : options_(options) {}
  std::string LogEnd(size_t worker) const;

  const Options options_;
  std::vector<std::unique_ptr<app::ChildProcess>> workers_;
};

}  // namespace cistern
