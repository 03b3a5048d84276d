// cistern save and cistern load: the state of a fleet as files of its servers, and back.
#pragma once

#include <string>
#include <vector>

#include "cli/session/fleet_session.h"
#include "cli/session/model_source.h"
#include "cli/session/precondition.h"
#include "cli/terminal/command_line.h"

namespace cistern {

struct SaveFlags {
  FleetFlags fleet;
  std::string name;           // below each server's data_dir
  std::string mode = "all";   // v1::SaveMode in small letters
  std::string rows = "text";  // v1::SaveFormat::Kind in small letters
  bool gzip = false, six_digits = false;
  uint64_t day = 0;  // today, where rows keep days
};

struct LoadFlags {
  FleetFlags fleet;
  std::string name;                       // below each server's data_dir; or
  std::string model_dir;                  // a model folder of this machine, and
  ModelFlags model;                       // the model file that it belongs to
  bool replace = false;                   // removes what the servers hold first
  bool upgrade = false, foreign = false;  // as in LoadRequest
  std::vector<std::string> tables;        // as there
  Precondition expected;                  // of replace
};

// Every server writes its shards under its data_dir, all at once. Where the mode asks for it, the
// statistics of what was saved are reset once every server's files are on disk, and that is
// committed.
absl::StatusOr<Report> RunSave(const SaveFlags& flags, Console* console = nullptr);
// Every server reads its shards. Where they hold exactly these rows already, nothing is done. A
// load that fails leaves durable servers at their last commit, and others empty.
absl::StatusOr<Report> RunLoad(const LoadFlags& flags, Console* console = nullptr);

// Rows, bytes (0: not said) and time of either, in both forms of a report.
void AppendTotals(const char* verb, uint64_t rows, uint64_t bytes, double seconds, Report* report);

void AddSaveCommand(Command& root);
void AddLoadCommand(Command& root);

}  // namespace cistern
