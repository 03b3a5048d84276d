// train --publish: publishes the commits of a training beside it.
#pragma once

#include <atomic>
#include <memory>

#include "app/export/publish.h"
#include "cli/command/train_command.h"
#include "common/base/thread_pool.h"

namespace cistern {

// Threads: one at a time; it has a thread of its own, which lowers its own priority.
class PublishBeside {
 public:
  // Starts, if flags.publish names a serving folder. kInvalidArgument, with a fix: the training
  // keeps no commits here.
  static absl::StatusOr<std::unique_ptr<PublishBeside>> Start(const TrainFlags& flags,
                                                              const app::WorkerRank& worker,
                                                              Console& console);
  ~PublishBeside();

  // After the training: publishes its last commit and stops. Adds to `report`. The training is
  // good whatever this returns.
  absl::Status Finish(Report* report);

 private:
  PublishBeside(const TrainFlags& flags, Console& console);
  void Run();
  app::JobCalls Calls();

  app::PublishOptions options_;
  Console& console_;
  std::atomic<bool> stop_{false};
  absl::StatusOr<app::Published> published_ = app::Published();  // once thread_ is gone
  std::unique_ptr<ThreadPool> thread_;
};

}  // namespace cistern
