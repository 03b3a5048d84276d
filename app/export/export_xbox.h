// Writes rows as SequenceFiles for Paddle Serving's Cube (worker/export/xbox/xbox_model.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "app/model/export_source.h"
#include "worker/export/xbox/xbox_model.h"

namespace cistern::app {

struct XboxExport {
  ExportOptions source;
  std::string out;    // the folder of the dictionary; with several tables, of one for each
  std::string named;  // the folder that the donefiles name; empty: `out`
  // BASE: every row with a sufficient score; DELTA: of these, those that changed since they were
  // last exported.
  v1::SaveMode kind = v1::BASE;
  SequenceFormat format;
  uint64_t files = 16;              // of a table; key % files tells the file of a row
  uint64_t day = 0;                 // CheckDay
  std::vector<std::string> tables;  // empty: all
  // Becomes the fleet's writer, and afterwards resets the statistics of the exported rows, so that
  // the next delta begins here. Needs servers.
  bool update = false;
};

struct XboxExported {
  v1::SaveMode kind = v1::BASE;
  bool updated = false;
  XboxWritten written;
  CommittedVersion version;
  double seconds = 0;
};

// Errors as OpenExportSource and WriteXbox. kInvalidArgument: options.update, but a table with
// statistics is left out, or there is none. kCancelled: calls.stop was set.
absl::StatusOr<XboxExported> ExportXbox(const XboxExport& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const XboxExported& exported);

}  // namespace cistern::app
