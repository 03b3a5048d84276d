// Saves a server's committed state as its part of a saved model
// (common/saved_model/model_folder.h), and loads it onto any number of servers.
//
// The shard of a row depends only on its key, and a dense table is one run of rows. A load
// therefore re-partitions what n servers saved: each server reads the files of its own shards and
// the rows of its own range, whichever server wrote them.
//
// Threads: any thread. The caller must keep the store unchanged until the call returns (no commit,
// clear or other load). Work is spread over `pool`; the caller must not be one of its threads.
// Saves and loads start twice as many threads of their own, some of which wait for the disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_pool.h"
#include "common/base/types.h"
#include "common/saved_model/model_folder.h"
#include "common/saved_model/saved_commit.h"
#include "server/saved_model/load_plan.h"
#include "server/table/table_store.h"

namespace cistern::server {

// Which rows to save, and in which form.
struct SaveOptions {
  v1::SaveMode mode =
      v1::ALL;  // DELTA, BASE: only some rows of ctr tables (common/value/accessor/ctr_lifecycle.h)
  v1::SaveFormat format;
  uint32_t day = 0;  // DELTA, BASE: today, for tables that keep days
  // If set, an existing save of this pass is removed first.
  std::optional<PassId> instead_of = std::nullopt;
  SavedCommit commit = {};  // whose rows the store holds
};

// Totals of all files, including dense ones.
struct SaveTotals {
  uint64_t rows = 0, bytes = 0, files = 0;
  std::vector<std::string> file_names;  // below the folder
};

// Writes this server's part of the model of pass `pass`: one file per table and shard, then its
// rows of the dense tables, and last the json file of the part.
//
// kAlreadyExists: the folder holds this part, or a save by another number of servers; nothing is
// changed. kFailedPrecondition: the store has no tables. kInvalidArgument: an unknown format, or an
// impossible day. File errors carry their path; the call then removes what it wrote, and the store
// is unchanged. Rows are brought up to the store's clock (common/value/step_clock.h).
absl::StatusOr<SaveTotals> SaveStore(FileSystem& disk, const TableStore& store, PassId pass,
                                     const std::string& folder, ThreadPool& pool,
                                     const SaveOptions& options = {});

// Rows that this server loaded, including dense ones, and the pass of the model.
struct LoadTotals {
  uint64_t rows = 0;
  PassId pass = 0;
  v1::PassDays days;  // up to `pass`, if a table of the store needs them and the model has them
  std::vector<v1::TableLeftOut> left_out;  // tables of the store that were not read
};

// Loads the rows that this server owns. Creates the tables from the model's schema if the store has
// none; if the load fails later, they stay, without rows. The files determine modes and formats.
//
// kNotFound: the folder holds no model. kDataLoss, with file and line: an unreadable row, a row of
// another shard than its file's, a reserved key, or a repeated key; a file that changed since it
// was saved. kFailedPrecondition: other tables (ChooseTables, with options.tables and
// options.upgrade) or another shard_num, with the difference. kAlreadyExists: all of the above is
// in order, but the store has rows. Step counts of the rows restart from 0. A foreign model has
// pass 0.
absl::StatusOr<LoadTotals> LoadStore(FileSystem& disk, TableStore& store, const std::string& folder,
                                     ThreadPool& pool, const LoadOptions& options = {});

}  // namespace cistern::server
