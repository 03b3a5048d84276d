// The seven steps of `cistern demo`.
//
//   1 data      planted samples whose best possible AUC is known
//   2 servers   two cistern-server processes on loopback
//   3 train     a cistern-worker process, over gRPC
//   4 evaluate  against the two servers
//   5 save      each server its part; then both are stopped
//   6 load      onto three new servers
//   7 compare   evaluated again: the predictions are the same bytes
//
// Everything that was started is stopped when the Demo goes, however it goes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "cli/command/evaluate_commands.h"
#include "cli/session/local_servers.h"
#include "cli/terminal/command_line.h"
#include "common/base/status.h"

namespace cistern {

struct DemoFlags {
  std::string dir;           // empty: a temporary folder, removed at the end
  uint64_t samples = 80000;  // to train on; a quarter as many to test
  bool keep = false;
};

// Threads: one at a time.
class Demo {
 public:
  // console and interrupted outlive this.
  Demo(const DemoFlags& flags, const std::atomic<bool>* interrupted, Console* console)
      : flags_(flags), interrupted_(interrupted), console_(console) {}
  ~Demo();

  absl::StatusOr<Report> Run();

 private:
  // Runs one step: its name and number before, what it says and its time after.
  absl::Status Step(const std::string& name, const std::function<absl::Status()>& body);
  absl::Status MakeFolder();
  absl::Status MakeData();
  absl::Status StartServers(int server_num);
  absl::Status RunWorker();
  absl::Status WaitForWorker(ChildProcess& worker);
  // Predicts the test data on the running servers into `output`.
  absl::Status PredictTo(const std::string& output);
  absl::Status Save();
  absl::Status Load();
  absl::Status Compare();
  std::string NextSteps() const;

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  FleetFlags FleetOf() const;
  ModelFlags ModelOf() const;

  const DemoFlags flags_;
  const std::atomic<bool>* const interrupted_;
  Console* const console_;
  std::string dir_, programs_;
  bool remove_dir_ = false;
  std::unique_ptr<LocalServers> servers_;
  int step_ = 0;
  std::string said_;  // what the current step has to say
  Report report_;
  double best_auc_ = 0, auc_ = 0;
};

}  // namespace cistern
