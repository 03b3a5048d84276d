// DurableState::Recover: the tables, from the files of the newest manifest.
#include <algorithm>
#include <atomic>

#include "common/schema.h"
#include "server/checkpoint/compaction.h"
#include "server/checkpoint/dense_section.h"
#include "server/checkpoint/durable_state.h"
#include "server/checkpoint/shard_rows.h"

namespace cistern {
namespace {

constexpr size_t kInsertRows = 1024;  // written under one lock

// Collects the rows of one shard and writes them in batches.
class ShardLoader {
 public:
  ShardLoader(SparseTable& table, uint32_t local) : table_(table), local_(local) {}

  absl::Status Add(Key key, const float* value, bool full) {
    CISTERN_RETURN_IF_ERROR(table_.CheckKeys(absl::MakeConstSpan(&key, 1)));
    keys_.push_back(key);
    values_.insert(values_.end(), value, value + table_.layout().full_floats());
    full_.push_back(full ? 1 : 0);
    if (keys_.size() == kInsertRows) Flush();
    return absl::OkStatus();
  }
  void Flush() {
    table_.WriteShard(local_, keys_, values_.data(), full_.data());
    keys_.clear();
    values_.clear();
    full_.clear();
  }

 private:
  SparseTable& table_;
  const uint32_t local_;
  std::vector<Key> keys_;
  std::vector<float> values_;
  std::vector<uint8_t> full_;
};

}  // namespace

std::vector<v1::RowFile> DurableState::FilesOf(const v1::Manifest& manifest) const {
  std::vector<v1::RowFile> files;
  for (const v1::RowFile& file : manifest.files()) {
    if (HoldsRowsOf(file, map_, rank_)) files.push_back(file);
  }
  OrderByCommit(&files);
  return files;
}

bool DurableState::FollowsByDelta(const ParsedManifest& newest) const {
  absl::MutexLock lock(&mutex_);
  if (ahead_ || dirty_ || totals_stale_) return false;
  if (newest.manifest.commit() != manifest_.manifest.commit() + 1 ||
      newest.manifest.previous() != manifest_.self_xxh3 || manifest_.manifest.commit() == 0) {
    return false;
  }
  for (const v1::RowFile& file : FilesOf(newest.manifest)) {
    if (file.commit() == newest.manifest.commit() && file.base()) return false;
  }
  return true;
}

absl::StatusOr<PassId> DurableState::Recover(TableStore& store) {
  Forget();
  // A name that another process gave may not be on disk yet; nothing may build on it before it is.
  CISTERN_RETURN_IF_ERROR(folder_->SyncManifests());
  CISTERN_ASSIGN_OR_RETURN(const std::optional<ParsedManifest> newest, folder_->NewestManifest());
  std::vector<v1::RowFile> files;
  if (newest.has_value()) {
    files = FilesOf(newest->manifest);
    CISTERN_RETURN_IF_ERROR(AddContext(store.Create(newest->manifest.schema()), folder_->path()));
  }
  const bool by_delta = newest.has_value() && FollowsByDelta(*newest);
  if (by_delta) {
    files.erase(std::remove_if(files.begin(), files.end(),
                               [&](const v1::RowFile& file) {
                                 return file.commit() != newest->manifest.commit();
                               }),
                files.end());
  } else {
    store.Clear();
    compaction_->Drop();
    totals_.clear();
  }
  touched_.clear();
  dense_touched_.clear();
  totals_stale_ = false;
  base_needed_ = !newest.has_value();
  const absl::Status loaded = LoadFiles(store, files);
  if (!loaded.ok()) {
    store.Clear();
    totals_.clear();
    absl::MutexLock lock(&mutex_);
    ahead_ = dirty_ = true;  // memory is no commit's: the next attempt reads everything
    return loaded;
  }
  if (!newest.has_value()) {
    absl::MutexLock lock(&mutex_);
    ahead_ = dirty_ = false;
    return 0;
  }
  CISTERN_RETURN_IF_ERROR(KeepOlderManifests(newest->manifest.commit()));
  TakeManifest(*newest);
  return newest->manifest.pass();
}

absl::Status DurableState::KeepOlderManifests(uint64_t newest) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, folder_->Commits());
  std::vector<ParsedManifest> kept;
  for (const uint64_t commit : commits) {
    if (commit >= newest || commit + options_.keep_commits <= newest) continue;
    absl::StatusOr<ParsedManifest> older = folder_->ReadManifest(commit);
    if (absl::IsNotFound(older.status())) continue;  // removed meanwhile
    CISTERN_RETURN_IF_ERROR(older.status());
    kept.push_back(*std::move(older));
  }
  absl::MutexLock lock(&mutex_);
  kept_ = std::move(kept);
  return absl::OkStatus();
}

absl::Status DurableState::LoadFiles(TableStore& store, const std::vector<v1::RowFile>& files) {
  std::vector<std::unique_ptr<RowFileReader>> readers;
  for (const v1::RowFile& file : files) {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<RowFileReader> reader,
                             RowFileReader::Open(folder_->files(), folder_->data_path(), file));
    const RowFileHeader& header = reader->header();
    if (header.cluster_id != cluster_id_ || header.schema_hash != store.schema_hash() ||
        header.shard_num != map_.shard_num()) {
      return absl::DataLossError(absl::StrCat(folder_->data_path(), "/", file.name(),
                                              ": it is of another cluster, model or shard_num"));
    }
    readers.push_back(std::move(reader));
  }
  totals_.resize(store.sparse_tables().size());
  for (size_t t = 0; t < store.sparse_tables().size(); ++t) {
    SparseTable& table = *store.sparse_tables()[t];
    totals_[t].resize(table.local_shard_num());
    std::vector<absl::Status> loaded(table.local_shard_num());
    pool_->ParallelFor(loaded.size(), [&](size_t local) {
      loaded[local] = LoadShard(table, static_cast<TableId>(t), static_cast<uint32_t>(local),
                                readers, &totals_[t][local]);
    });
    for (const absl::Status& status : loaded) CISTERN_RETURN_IF_ERROR(status);
  }
  for (size_t t = 0; t < store.dense_tables().size(); ++t) {
    for (const std::unique_ptr<RowFileReader>& reader : readers) {
      CISTERN_RETURN_IF_ERROR(
          TakeDenseSections(*reader, static_cast<TableId>(t), *store.dense_tables()[t]));
    }
  }
  return absl::OkStatus();
}

absl::Status DurableState::LoadShard(SparseTable& table, TableId id, uint32_t local,
                                     const std::vector<std::unique_ptr<RowFileReader>>& files,
                                     ShardTotals* totals) const {
  const ShardIndex shard = map_.global_shard(rank_, local);
  std::vector<std::pair<const RowFileReader*, const RowSection*>> sections;
  for (const std::unique_ptr<RowFileReader>& file : files) {
    if (shard % file->header().server_num != file->header().server) continue;
    if (file->header().base) sections.clear();
    const RowSection* section = file->FindSparse(id, shard);
    if (section != nullptr) sections.emplace_back(file.get(), section);
  }
  if (sections.empty()) return absl::OkStatus();
  ShardLoader loader(table, local);
  for (const auto& [file, section] : sections) {
    CISTERN_RETURN_IF_ERROR(file->ReadSparse(
        *section, table.layout(),
        [&](Key key, const float* value, bool full) { return loader.Add(key, value, full); }));
    loader.Flush();
  }
  *totals = TotalsOf(table, local);
  const RowSection& last = *sections.back().second;
  if (*totals == ShardTotals{last.total_rows, last.digest}) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      folder_->path(), ": table '", table.spec().name(), "', shard ", shard, ": ", totals->rows,
      " rows with digest ", absl::Hex(totals->digest), " were read where the newest file has ",
      last.total_rows, " with ", absl::Hex(last.digest)));
}

}  // namespace cistern
