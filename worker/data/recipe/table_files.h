// The files of a table that is named on a command line: a file, several, or a folder of part files
// as Spark and Hadoop write it, also one that is partitioned by columns (dt=2024-05-31/part-0.csv).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {

// `path` itself if it is a file, or is not there. Of a folder of this machine: the files in it and
// in its folders named COLUMN=VALUE, sorted by name. Names that begin with "_" or "." do not count
// (_SUCCESS, _metadata, .part-0.crc), nor do empty files. Of a pattern (parts/*.csv,
// part-{0..9}.csv) the files that match; of paths with commas between them, the files of each.
//
// kInvalidArgument, with the next step in the message: a folder without files, one that a writer
// has not finished (_temporary), one with other folders in it, or one that holds a data set of
// Cistern; a pattern that matches nothing.
absl::StatusOr<std::vector<std::string>> TableFiles(const std::string& path);
// The same for each of several paths.
absl::StatusOr<std::vector<std::string>> TableFiles(const std::vector<std::string>& paths);

// The columns that the folders of a partitioned table stand for: "dt" of table/dt=2024-05-31/x.csv,
// where `path` is "table".
std::vector<std::string> PartitionColumns(const std::string& path);
// `table`, read from `file`, with those of `columns` that it lacks and that folders in the path of
// the file give.
std::unique_ptr<TextTable> WithPartitions(std::unique_ptr<TextTable> table, const std::string& file,
                                          const std::vector<std::string>& columns);

// Whether a file of this machine begins as Parquet files do.
bool IsParquetFile(const std::string& path);

}  // namespace cistern::data
