// Export of sparse tables for serving by Paddle Serving's Cube or a store of PSLib's form (spec/003
// section 2.2.1). A table becomes a dictionary:
//
//   DICT/<id>/base/feature/part-000 ...   rows of a base: SequenceFiles (part_files.h)
//   DICT/<id>/patch/feature/part-000 ...  rows of a delta
//   DICT/<id>/xbox.json                   what they were made from (export_manifest.h)
//   DICT/donefile/base.txt, patch.txt     the versions, a line each (donefile.h)
//
// DICT is the folder of the export if one table is exported, else FOLDER/<table>: keys of different
// tables may be equal, so each needs a dictionary of its own. The lines of all tables appear at
// once (donefile_set.h). id: seconds since 1970, or one more than the last id of the dictionaries,
// whichever is more.
//
// A row is in file `key % files`; the rows of a shard are sorted by key. The rows are those of a
// save of the same mode (common/value/accessor/ctr_lifecycle.h). A table with the accessor
// `embedding` has no statistics, so it has a base, of all its rows, and no delta.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/export/committed_model.h"
#include "worker/export/xbox/sequence_file.h"

namespace cistern {

struct XboxOptions {
  std::string folder;            // absolute
  std::string named = {};        // donefiles name folders below it; empty: below `folder`
  v1::SaveMode mode = v1::BASE;  // BASE or DELTA
  SequenceFormat format = {};
  uint32_t files = 16;  // of each table
  uint32_t day = 0;     // as for a save
  uint64_t now = 0;     // seconds since 1970
  std::vector<TableId> tables = {};
};

struct XboxWritten {
  struct Table {
    std::string name, folder;
    uint64_t rows = 0, bytes = 0, limited = 0, digest = 0;
  };
  uint64_t id = 0;
  std::vector<Table> tables;
};

// Exports the committed state. Files and manifest are on disk before <id> appears, and <id> before
// its line in the donefile: a version exists once its donefile names it. What a killed export left
// is removed by the next one. Memory: the rows of a shard, and 1 MiB per file.
//
// kInvalidArgument: unusable options; a delta of a table without statistics, or of a dictionary
// without a base. kFailedPrecondition: another process exports to this folder. kDataLoss: a
// donefile is malformed. kAborted: CommittedModel::Recheck.
absl::StatusOr<XboxWritten> WriteXbox(FileSystem& files, CommittedModel& model,
                                      const XboxOptions& options);

}  // namespace cistern
