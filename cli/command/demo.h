// The seven steps of `cistern demo`.
//
//   1 data      writes synthetic samples whose best possible AUC is known
//   2 servers   starts two cistern-server processes on loopback
//   3 train     runs a cistern-worker process, over gRPC
//   4 evaluate  predicts the test data on the two servers
//   5 save      saves the model on both servers, and stops them
//   6 load      loads it onto three new servers
//   7 compare   predicts again: the output must be byte for byte the same
//
// The destructor of Demo stops every process that was started, also after an error.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "app/fleet/local_servers.h"
#include "cli/command/evaluate_commands.h"
#include "cli/terminal/command_line.h"
#include "common/base/status.h"

namespace cistern {

struct DemoFlags {
  std::string dir;           // empty: a temporary folder, removed at the end
  uint64_t samples = 80000;  // training samples; there are a quarter as many test samples
  bool keep = false;
};

// Threads: one at a time.
class Demo {
 public:
  // console, interrupted: outlive this.
  Demo(const DemoFlags& flags, const std::atomic<bool>* interrupted, Console* console)
      : flags_(flags), interrupted_(interrupted), console_(console) {}
  ~Demo();

  absl::StatusOr<Report> Run();

 private:
  // Runs one step; prints its number and name first, and its time and result at the end.
  absl::Status Step(const std::string& name, const std::function<absl::Status()>& body);
  absl::Status MakeFolder();
  absl::Status MakeData();
  absl::Status StartServers(int server_num);
  absl::Status RunWorker();
  absl::Status WaitForWorker(app::ChildProcess& worker);
  // Writes the running servers' predictions of the test data to `output`.
  absl::Status PredictTo(const std::string& output);
  absl::Status Save();
  absl::Status Load();
  absl::Status Compare();
  std::string NextSteps() const;

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  app::FleetOptions FleetOf() const;
  app::ModelOptions ModelOf() const;

  const DemoFlags flags_;
  const std::atomic<bool>* const interrupted_;
  Console* const console_;
  std::string dir_, programs_;
  bool remove_dir_ = false;
  std::unique_ptr<app::LocalServers> servers_;
  int step_ = 0;
  std::string said_;  // the result line of the current step
  Report report_;
  double best_auc_ = 0, auc_ = 0;
};

}  // namespace cistern
