// Writes the rows that were shown most, for a memory cache (worker/export/cache/feature_cache.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/job_calls.h"
#include "app/model/export_source.h"
#include "worker/export/cache/feature_cache.h"

namespace cistern::app {

struct CacheExport {
  ExportOptions source;
  std::string out;            // the folder of the caches; those of an earlier export are replaced
  double rate = 0.00055;      // the share of the rows, about
  bool memory_cache = false;  // the rows in the memory caches of the servers, instead of a scan
  uint64_t files = 16;        // of a table
  uint64_t seed = 0;          // of the shuffle over the files
  uint64_t day = 0;           // CheckDay
  SequenceForm form = SequenceForm::kCube;
  std::vector<std::string> tables;  // empty: all with statistics
};

struct CacheExported {
  CacheWritten written;
  CommittedVersion version;
  double seconds = 0;
};

// Errors as OpenExportSource and WriteFeatureCache; kCancelled: calls.stop was set.
absl::StatusOr<CacheExported> ExportCache(const CacheExport& options, const JobCalls& calls);

nlohmann::ordered_json JsonOf(const CacheExported& exported);

}  // namespace cistern::app
