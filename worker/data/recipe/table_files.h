// The files of a table that is named on a command line: a file, or a folder of part files as Spark
// and Hadoop write it.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern {

// `path` itself unless it is a folder of this machine; else the files in it, sorted by name. Names
// that begin with "_" or "." do not count (_SUCCESS, _metadata, .part-0.crc), nor do empty files.
//
// kInvalidArgument, with the next step in the message: a folder without files, one that a writer
// has not finished (_temporary), one with folders in it (a partitioned table), or one that holds
// a data set of Cistern.
absl::StatusOr<std::vector<std::string>> TableFiles(const std::string& path);
// The same for each of several paths.
absl::StatusOr<std::vector<std::string>> TableFiles(const std::vector<std::string>& paths);

// Whether a file of this machine begins as Parquet files do.
bool IsParquetFile(const std::string& path);

}  // namespace cistern
