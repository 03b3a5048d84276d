// A server's committed state as its part of a saved model (common/saved_model/model_folder.h), and
// back onto any number of servers.
//
// The shard of a row is a property of its key alone, and a dense table is one run of rows, so what
// n servers saved is re-partitioned by reading: each server takes the files of its own shards and
// the rows of its own range, whoever wrote them.
//
// Threads: any; the caller keeps the store as it is until the call returns (no commit, clear or
// other load meanwhile). Work is spread over `pool`, of which the caller is not a
// thread; saves and loads start twice as many of their own, some of which wait for the disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/base/types.h"
#include "common/saved_model/model_folder.h"
#include "server/saved_model/load_plan.h"
#include "server/table/table_store.h"

namespace cistern {

// Which rows a save holds, and in which form.
struct SaveOptions {
  v1::SaveMode mode =
      v1::ALL;  // DELTA, BASE: of ctr tables only some (common/value/ctr_lifecycle.h)
  v1::SaveFormat format;
  uint32_t day = 0;  // DELTA, BASE: today, for tables that keep days
  // What is there of that pass is removed first.
  std::optional<PassId> instead_of = std::nullopt;
};

// Rows and bytes of all files, dense ones too.
struct SaveTotals {
  uint64_t rows = 0, bytes = 0, files = 0;
  std::vector<std::string> file_names;  // below the folder
};

// Writes this server's shards, one file a table and shard, its rows of the dense tables, and last
// the json file of its part, of pass `pass`.
//
// kAlreadyExists: the folder holds this part, or a save by another number of servers; nothing is
// changed. kFailedPrecondition: there are no tables. kInvalidArgument: a format that does not
// exist, a day that cannot be. Rows are brought up to the store's clock
// (common/value/step_clock.h). Errors of the files carry their path; then what this call wrote is
// removed, and the store is as it was.
absl::StatusOr<SaveTotals> SaveStore(FileSystem& disk, const TableStore& store, PassId pass,
                                     const std::string& folder, ThreadPool& pool,
                                     const SaveOptions& options = {});

// Rows that this server took, dense ones too, and the pass that the model is of.
struct LoadTotals {
  uint64_t rows = 0;
  PassId pass = 0;
  std::vector<v1::TableLeftOut> left_out;  // tables of the store that were not read
};

// Reads the rows that this server owns. The tables are created from the model's schema if the store
// has none; they stay when the load fails later, without a row. Modes and formats are the files'
// own.
//
// kNotFound: no model there. kDataLoss, with file and line: a row that cannot be read, of another
// shard than its file's, with a reserved key, or of a key that came before; a file that is not as
// it was saved. kFailedPrecondition: other tables (ChooseTables, with options.tables
// and options.upgrade) or another shard_num, with the difference. kAlreadyExists, where all this is
// as it must be: rows in the store. The rows' steps begin anew, from 0 on. A foreign model is of
// pass 0.
absl::StatusOr<LoadTotals> LoadStore(FileSystem& disk, TableStore& store, const std::string& folder,
                                     ThreadPool& pool, const LoadOptions& options = {});

}  // namespace cistern
