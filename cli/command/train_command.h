// cistern train, and the work of cistern-worker.
#pragma once

#include <string>

#include "cli/session/launcher_rank.h"
#include "cli/session/model_source.h"
#include "cli/terminal/command_line.h"

namespace cistern {

struct TrainFlags {
  ModelFlags model;
  std::string out;
  bool no_save_model = false;
  bool overwrite = false;
  bool resume = false;
  bool dry_run = false;
  std::string durability = "commit";  // or "none"
  double recovery_limit = 300;        // seconds
};

// MODEL.json, --out, --set ...
void AddTrainFlags(Command& command, TrainFlags* flags);

// Trains, shows progress on the console and returns the summary. A run that a signal ended reports
// kCancelled, after its state was committed and saved.
absl::StatusOr<Report> RunTrain(const TrainFlags& flags, const WorkerRank& worker,
                                Console& console);

void AddTrainCommand(Command& root);

}  // namespace cistern
