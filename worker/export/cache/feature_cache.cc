#include "worker/export/cache/feature_cache.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/hash.h"
#include "common/io/new_file.h"
#include "common/value/accessor.h"
#include "common/value/row_lifecycle.h"
#include "worker/export/cache/show_threshold.h"
#include "worker/export/export_manifest.h"
#include "worker/export/xbox/part_files.h"
#include "worker/export/xbox/xbox_value.h"

namespace cistern {
namespace {

constexpr char kForm[] = "cache", kManifest[] = "cache.json", kMeta[] = "sparse_cache.meta";

// The cache of one table.
class TableCache {
 public:
  TableCache(FileSystem& files, CommittedModel& model, const CacheOptions& options, TableId table)
      : files_(files), model_(model), options_(options), table_(table) {
    written_.name = model.schema().tables(static_cast<int>(table)).name();
    written_.folder =
        absl::StrCat(options.folder, "/", absl::Dec(table, absl::kZeroPad3), "_cache");
    fresh_ = written_.folder + ".new";
  }
  ~TableCache() {
    if (!done_) RemoveTree(files_, fresh_).IgnoreError();  // the error was reported
  }

  // Writes the folder, which is not visible yet.
  absl::Status Write(const ShardMap& map) {
    CISTERN_RETURN_IF_ERROR(CheckReplaceable(files_, written_.folder, kManifest, kForm));
    CISTERN_RETURN_IF_ERROR(RemoveTree(files_, fresh_));  // left by a killed process
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout,
                             ValueLayout::Create(model_.schema().tables(static_cast<int>(table_))));
    const std::unique_ptr<RowLifecycle> lifecycle =
        layout.accessor().MakeLifecycle(layout, options_.day);
    CISTERN_RETURN_IF_ERROR(FindThreshold(map, *lifecycle));
    CISTERN_RETURN_IF_ERROR(WriteRows(layout, *lifecycle));
    return WriteWhole(files_, absl::StrCat(fresh_, "/", kMeta),
                      absl::StrCat("file_prefix:part\npart_num:", options_.files,
                                   "\nkey_num:", written_.rows, "\n"));
  }
  absl::Status Publish() {
    CISTERN_RETURN_IF_ERROR(ReplaceFolder(files_, fresh_, written_.folder));
    done_ = true;
    return absl::OkStatus();
  }
  const CacheWritten::Table& written() const { return written_; }

 private:
  absl::Status FindThreshold(const ShardMap& map, const RowLifecycle& lifecycle) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> rows,
                             model_.CountRows(table_, options_.server_num));
    written_.of_rows = std::accumulate(rows.begin(), rows.end(), uint64_t{0});
    if (options_.from_servers) return absl::OkStatus();
    ShowThreshold threshold(map, rows, options_.rate);
    CISTERN_RETURN_IF_ERROR(model_.Scan(table_, [&](uint32_t shard, Key, const float* value, bool) {
      threshold.Add(shard, lifecycle.CountsOf(value).show);
      return absl::OkStatus();
    }));
    written_.threshold = threshold.Value();
    return absl::OkStatus();
  }

  absl::Status WriteRows(const ValueLayout& layout, const RowLifecycle& lifecycle) {
    const CommittedVersion version = model_.version();
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<PartFiles> parts,
                             PartFiles::Create(files_, fresh_, options_.files, options_.format,
                                               absl::StrCat(written_.name, "/cache/",
                                                            version.commit, "/", version.pass)));
    XboxEncoder encoder(&layout, options_.day);
    const uint64_t mask = MixKey(options_.seed);
    std::string bytes;
    double least = INFINITY;
    const auto add = [&](uint32_t, Key key, const float* value, bool has_embedx) -> absl::Status {
      const double show = lifecycle.CountsOf(value).show;
      if (show < written_.threshold) return absl::OkStatus();
      if (!lifecycle.IsSaved(v1::BASE, value)) return absl::OkStatus();
      least = std::min(least, show);
      encoder.Encode(value, has_embedx, &bytes);
      const uint64_t order = MixKey(key ^ mask);
      parts->Add(static_cast<uint32_t>(order % options_.files), order, key, bytes);
      return absl::OkStatus();
    };
    CISTERN_RETURN_IF_ERROR(options_.from_servers ? model_.ScanCached(table_, add)
                                                  : model_.Scan(table_, add));
    if (options_.from_servers) written_.threshold = std::isinf(least) ? 0 : least;
    CISTERN_RETURN_IF_ERROR(parts->EndGroup());
    CISTERN_RETURN_IF_ERROR(parts->Close());
    written_.rows = parts->rows();
    written_.bytes = parts->bytes();
    written_.limited = encoder.limited();
    return WriteManifest(files_, absl::StrCat(fresh_, "/", kManifest),
                         Manifest(version, layout, *parts));
  }

  ExportManifest Manifest(const CommittedVersion& version, const ValueLayout& layout,
                          const PartFiles& parts) const {
    ExportManifest manifest = ManifestOf(kForm, version);
    manifest["table"] = written_.name;
    manifest["dim"] = layout.dim();
    manifest["source"] = options_.from_servers ? "memory caches" : "tables";
    if (!options_.from_servers) manifest["rate"] = options_.rate;
    manifest["servers"] = options_.server_num;
    manifest["seed"] = options_.seed;
    if (layout.ctr().day_id_decay()) manifest["day"] = options_.day;
    manifest["threshold"] = written_.threshold;
    manifest["of_rows"] = written_.of_rows;
    manifest["rows"] = written_.rows;
    manifest["limited"] = written_.limited;
    manifest["seqfile"] = options_.format.form == SequenceForm::kCube ? "cube" : "hadoop";
    manifest["digest"] = HashText(parts.digest());
    manifest["files"] = parts.Describe("");
    return manifest;
  }

  FileSystem& files_;
  CommittedModel& model_;
  const CacheOptions& options_;
  const TableId table_;
  std::string fresh_;
  CacheWritten::Table written_;
  bool done_ = false;
};

absl::Status CheckOptions(const v1::Schema& schema, const CacheOptions& options) {
  CISTERN_RETURN_IF_ERROR(CheckFormat(options.format));
  if (!(options.rate > 0 && options.rate <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a rate of ", options.rate, ": expected a number above 0 and at most 1"));
  }
  if (options.files < 1 || options.files > PartFiles::kMaxFiles) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.files, " files: expected 1 to ", PartFiles::kMaxFiles));
  }
  for (const TableId table : options.tables) {
    const v1::TableSpec& spec = schema.tables(static_cast<int>(table));
    CISTERN_RETURN_IF_ERROR(CheckDay(spec, options.day));
    if (HasStatistics(spec)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("table '", spec.name(), "' has the accessor ", AccessorName(spec),
                     ", which does not count shows, so "
                     "nothing tells which of its rows to cache: name tables with the "
                     "accessor ctr"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CacheWritten> WriteFeatureCache(FileSystem& files, CommittedModel& model,
                                               const CacheOptions& options) {
  CISTERN_RETURN_IF_ERROR(CheckOptions(model.schema(), options));
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map,
                           ShardMap::Create(model.shard_num(), options.server_num));
  std::vector<std::unique_ptr<TableCache>> caches;
  for (const TableId table : options.tables) {
    caches.push_back(std::make_unique<TableCache>(files, model, options, table));
    CISTERN_RETURN_IF_ERROR(caches.back()->Write(map));
  }
  CISTERN_RETURN_IF_ERROR(model.Recheck());
  CacheWritten written;
  for (const auto& cache : caches) {
    CISTERN_RETURN_IF_ERROR(cache->Publish());
    written.tables.push_back(cache->written());
  }
  return written;
}

}  // namespace cistern
