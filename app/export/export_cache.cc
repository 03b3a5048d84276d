#include "app/export/export_cache.h"

#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "app/export/export_tables.h"
#include "common/value/accessor.h"

namespace cistern::app {

absl::StatusOr<CacheExported> ExportCache(const CacheExport& options, const JobCalls& calls) {
  CISTERN_RETURN_IF_ERROR(CheckDay(options.day));
  CacheOptions cache;
  CISTERN_ASSIGN_OR_RETURN(cache.files, FileCount(options.files));
  CISTERN_ASSIGN_OR_RETURN(const ExportSource source,
                           OpenExportSource(options.source, options.memory_cache, calls.stop));
  const absl::Time start = absl::Now();
  CISTERN_ASSIGN_OR_RETURN(cache.tables,
                           TablesOf(source.model->schema(), options.tables, HasStatistics));
  cache.folder = FolderOf(options.out);
  cache.rate = options.rate;
  cache.from_servers = options.memory_cache;
  cache.seed = options.seed;
  cache.day = static_cast<uint32_t>(options.day);
  cache.format.form = options.form;
  if (source.fleet != nullptr) {
    cache.server_num = static_cast<uint32_t>(source.fleet->client().servers().size());
  }
  LocalFileSystem files;
  absl::StatusOr<CacheWritten> written = WriteFeatureCache(files, *source.model, cache);
  if (!written.ok()) return WithFleetFix(written.status(), options.source.model.fleet);
  return CacheExported{*std::move(written), source.model->version(),
                       absl::ToDoubleSeconds(absl::Now() - start)};
}

nlohmann::ordered_json JsonOf(const CacheExported& exported) {
  nlohmann::ordered_json json;
  json["commit"] = exported.version.commit;
  json["pass"] = exported.version.pass;
  uint64_t rows = 0, bytes = 0;
  for (const CacheWritten::Table& table : exported.written.tables) {
    rows += table.rows;
    bytes += table.bytes;
    json["tables"].push_back({{"name", table.name},
                              {"path", table.folder},
                              {"threshold", table.threshold},
                              {"rows", table.rows},
                              {"of_rows", table.of_rows},
                              {"bytes", table.bytes},
                              {"limited", table.limited}});
  }
  json["rows"] = rows;
  json["bytes"] = bytes;
  json["seconds"] = exported.seconds;
  return json;
}

}  // namespace cistern::app
