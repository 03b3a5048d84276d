// cistern train; cistern-worker runs the same code.
#pragma once

#include <string>
#include <vector>

#include "app/model/model_source.h"
#include "app/run/launcher_rank.h"
#include "cli/command/metrics_flags.h"
#include "cli/command/table_flags.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

struct TrainFlags {
  app::ModelOptions model;
  std::string out;
  bool no_save_model = false;
  bool overwrite = false;
  bool resume = false;
  bool continues = false;         // --continue: the rows that servers hold are trained further
  std::vector<std::string> more;  // --more: the data of a run that continues a finished one
  std::string stream;             // --stream: data that never ends
  bool once = false;              // --once: the stream ends once it is empty
  std::string publish;            // --publish: the serving folder of its commits
  bool dry_run = false;
  std::string durability = "commit";  // or "none"
  double recovery_limit = 300;        // seconds
  std::string run_id;                 // --run-id; empty: worker 0 picks one
  std::vector<std::string> log;       // --log: programs that show the figures of the run
  std::string log_dir;                // --log-dir
  std::string trace;                  // --trace
  MetricsFlags metrics;
  TableModelFlags table;            // for a table (CSV, TSV) in place of the model file
  std::vector<std::string> tables;  // more files of this table
};

// Adds MODEL.json, --out, --set and all other flags of a training run.
void AddTrainFlags(Command& command, TrainFlags* flags);

// Trains, prints progress on the console, and reports the summary. If a signal ends the run, its
// state is committed and saved first, and the report's outcome is kCancelled.
absl::StatusOr<Report> RunTrain(const TrainFlags& flags, const app::WorkerRank& worker,
                                Console& console);

void AddTrainCommand(Command& root);

}  // namespace cistern::cli
