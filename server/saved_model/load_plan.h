// Which files hold the rows of a store's tables, and how they are read.
//
// A saved model says so itself: its json files list everything, and each file's bytes are checked.
// A foreign model is a folder as PSLib and Paddle leave it, without a word about what is in it:
//
//   FOLDER/000/part-<server>               dense table 0: its rows in order, file after file
//   FOLDER/001/part-<server>-<shard>       the next table: one file a shard, its number last
//
// Tables are told by their number: dense ones first, then sparse ones, in the order of the schema
// (PSLib's and Paddle's jobs have one of each). Names may end in .bin and .gz (model_folder.h), and
// other names mean nothing. Nothing vouches for the bytes, but each row must be of its file's
// shard.
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

namespace cistern {

// What a load may put up with.
struct LoadOptions {
  bool upgrade = false;  // rows of another layout than the table's are converted (value_upgrade.h)
  bool foreign = false;  // the folder is a foreign model
  std::vector<std::string> tables;  // names of those to read; empty: all
};

struct LoadPlan {
  struct File {
    ModelFile record;  // foreign: the name alone
    bool foreign = false;
  };
  struct Sparse {
    std::vector<File> by_shard;  // empty: the table is not read
    // A parser for one thread.
    std::function<absl::StatusOr<RowParser>(v1::SaveFormat::Kind kind)> parser;
  };
  struct Dense {
    // File i of n holds the rows that server i of n owns (dense_range.h); empty: never written, or
    // not read. A foreign one may have rows behind the table's last, up to those of a whole file.
    std::vector<File> files;
    std::function<DenseRowParser(v1::SaveFormat::Kind kind)> parser;
  };
  // As the store's tables.
  std::vector<Sparse> sparse;
  std::vector<Dense> dense;
  std::vector<v1::TableLeftOut> left_out;  // tables that are not read
  PassId pass = 0;                         // 0 for a foreign model
};

// Reads what the folder says about itself. The tables are created from the model's schema if the
// store has none. kNotFound, kDataLoss: as ReadParts. kFailedPrecondition: other tables than those
// that can be read (ChooseTables) or another shard_num, with the difference; a foreign model and no
// tables.
absl::StatusOr<LoadPlan> PlanLoad(FileSystem& disk, TableStore& store, const std::string& folder,
                                  const LoadOptions& options);

// Reads the rows of one file.
absl::Status ReadRows(FileSystem& disk, const std::string& folder, const LoadPlan::File& file,
                      const std::function<absl::Status(absl::string_view row)>& row);

}  // namespace cistern
