// cistern save and cistern load: write the state of a fleet to files of its servers, and read it
// back.
#pragma once

#include <string>
#include <vector>

#include "app/fleet/fleet_session.h"
#include "app/fleet/precondition.h"
#include "app/model/model_source.h"
#include "cli/terminal/command_line.h"

namespace cistern::cli {

struct SaveFlags {
  app::FleetOptions fleet;
  std::string name;           // folder below each server's data_dir
  std::string to = {};        // the same; with a slash: a folder of this machine
  std::string mode = "all";   // v1::SaveMode in lower case
  std::string rows = "text";  // v1::SaveFormat::Kind in lower case
  bool gzip = false, six_digits = false;
  std::vector<std::string> since = {};  // an earlier state: only what changed is saved, to `to`
  uint64_t day = 0;                     // today's day number, for tables whose rows record days
};

struct LoadFlags {
  app::FleetOptions fleet;
  std::string name;                          // folder below each server's data_dir; or
  std::string model_dir;                     // a model folder on this machine, with
  app::ModelOptions model;                   // its model file
  bool replace = false;                      // first removes what the servers hold
  bool upgrade = false, foreign = false;     // as in v1::LoadRequest
  std::vector<std::string> tables;           // as in v1::LoadRequest
  std::vector<std::string> increments = {};  // folders on this machine, loaded last
  app::Precondition expected;                // checked before anything changes
};

// All servers write their shards under their data_dir, in parallel. If the mode requires it, the
// statistics of the saved rows are reset once every server's files are on disk, and the reset is
// committed. `to` with a slash is a folder of this machine: the client writes all rows there.
absl::StatusOr<Report> RunSave(const SaveFlags& flags, Console* console = nullptr);
// All servers read their shards. If they already hold exactly these rows, nothing happens. After a
// failed load, durable servers return to their last commit and others are empty.
absl::StatusOr<Report> RunLoad(const LoadFlags& flags, Console* console = nullptr);

// Adds rows, bytes (0: left out) and time of a save or load to the report's json and text.
void AppendTotals(const char* verb, uint64_t rows, uint64_t bytes, double seconds, Report* report);

void AddSaveCommand(Command& root);
void AddLoadCommand(Command& root);

}  // namespace cistern::cli
