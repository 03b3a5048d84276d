// The plan of a load: which files hold the rows of a store's tables, and how they are parsed.
//
// A saved model describes itself: its json files list everything, and each file's bytes are
// checked. A foreign model is a folder as PSLib and Paddle write it, without any description:
//
//   FOLDER/000/part-<server>               dense table 0: its rows in order, one file after another
//   FOLDER/001/part-<server>-<shard>       the next table: one file per shard, its number last
//
// Tables are identified by their number: dense ones first, then sparse ones, in schema order
// (PSLib's and Paddle's jobs have one of each). Names may end in .bin and .gz (model_folder.h);
// files with other names are ignored. No checksum protects the bytes, but each row must belong to
// its file's shard.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/types.h"
#include "common/io/file_system.h"
#include "common/saved_model/model_folder.h"
#include "common/saved_model/model_rows.h"
#include "server/table/table_store.h"

namespace cistern::server {

// Options of a load.
struct LoadOptions {
  bool upgrade = false;  // rows of another layout than the table's are converted (value_upgrade.h)
  bool foreign = false;  // the folder is a foreign model
  std::vector<std::string> tables;  // names of the tables to read; empty: all
};

struct LoadPlan {
  struct File {
    ModelFile record;  // foreign: only the name is set
    bool foreign = false;
  };
  struct Sparse {
    std::vector<File> by_shard;  // empty: the table is not read
    // A parser for one thread.
    std::function<absl::StatusOr<RowParser>(v1::SaveFormat::Kind kind)> parser;
  };
  struct Dense {
    // File i of n holds the rows that server i of n owns (dense_range.h); empty if the table was
    // never written or is not read. A foreign file may have rows after the table's last, up to the
    // size of a full file.
    std::vector<File> files;
    std::function<DenseRowParser(v1::SaveFormat::Kind kind)> parser;
  };
  // In the order of the store's tables.
  std::vector<Sparse> sparse;
  std::vector<Dense> dense;
  std::vector<v1::TableLeftOut> left_out;  // tables that are not read
  PassId pass = 0;                         // 0 for a foreign model
  v1::PassDays days;                       // up to `pass`, if a table of the store needs them
};

// Reads the description in the folder. Creates the tables from the model's schema if the store has
// none. kNotFound, kDataLoss: as ReadParts. kFailedPrecondition: tables that cannot be read into
// the store's (ChooseTables) or another shard_num, with the difference; a foreign model for a store
// without tables.
absl::StatusOr<LoadPlan> PlanLoad(FileSystem& disk, TableStore& store, const std::string& folder,
                                  const LoadOptions& options);

// Reads the rows of one file.
absl::Status ReadRows(FileSystem& disk, const std::string& folder, const LoadPlan::File& file,
                      const std::function<absl::Status(absl::string_view row)>& row);

}  // namespace cistern::server
