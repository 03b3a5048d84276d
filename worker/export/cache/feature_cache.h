// Export of the rows that were shown most, for the memory cache of serving programs (spec/003
// sections 1.2 and 2.2.2). For each table:
//
//   FOLDER/<table:03>_cache/part-000 ...         SequenceFiles as for xbox (part_files.h)
//   FOLDER/<table:03>_cache/sparse_cache.meta    "file_prefix:part", "part_num:16", "key_num:1234",
//                                                a line each, as PSLib's drivers write it
//   FOLDER/<table:03>_cache/cache.json           what they were made from (export_manifest.h)
//
// <table> is the number of the table, from 0. The cache holds the rows that a base would hold
// (RowLifecycle::IsSaved) with at least as many shows as show_threshold.h says, or those that the
// servers keep in their memory caches. They are shuffled:
// file and place of a row are a function of its key and a seed.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/export/committed_model.h"
#include "worker/export/xbox/sequence_file.h"

namespace cistern {

struct CacheOptions {
  std::string folder;
  double rate = 0.00055;  // of the rows, above 0 and at most 1
  // The rows are those in the memory caches of the servers (server/table/memory_cache.h), which
  // have a rate of their own; the tables are not scanned.
  bool from_servers = false;
  uint32_t files = 16;  // of each table
  uint64_t seed = 0;
  uint32_t day = 0;         // as for a save
  uint32_t server_num = 1;  // how the shards are placed, for the threshold: shard % server_num
  SequenceFormat format = {};
  std::vector<TableId> tables = {};  // with the accessor ctr
};

struct CacheWritten {
  struct Table {
    std::string name, folder;
    uint64_t rows = 0, bytes = 0, limited = 0;  // limited: as XboxEncoder
    uint64_t of_rows = 0;                       // of the table
    double threshold = 0;                       // of from_servers: the least shows of a row
  };
  std::vector<Table> tables;
};

// Exports the committed state. Reads each table twice, or only what the servers have cached. Each
// folder appears as a whole, after all of them are on disk, and replaces that of an earlier export.
// Memory: the cached rows of a table, and 1 MiB per file. kInvalidArgument: unusable options, or a
// table without statistics. kFailedPrecondition: a server without a memory cache. kAlreadyExists: a
// folder holds anything but an earlier cache. kAborted: CommittedModel::Recheck.
absl::StatusOr<CacheWritten> WriteFeatureCache(FileSystem& files, CommittedModel& model,
                                               const CacheOptions& options);

}  // namespace cistern
