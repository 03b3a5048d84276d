// DurableState::Recover: loads the tables from the files of the newest manifest.
#include <algorithm>
#include <atomic>

#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/value/row_digest.h"
#include "common/value/schema.h"
#include "server/checkpoint/compaction.h"
#include "server/checkpoint/dense_section.h"
#include "server/checkpoint/shard_rows.h"
#include "server/commit/durable_state.h"
#include "server/table/value_block.h"

namespace cistern::server {
namespace {

// Writes the rows of one shard, block by block, and keeps its totals up to date.
class ShardLoader {
 public:
  // totals: of the rows that the shard holds; updated with every write.
  ShardLoader(SparseTable& table, uint32_t local, ShardTotals* totals)
      : table_(table), local_(local), digest_(table.layout()), totals_(totals) {}

  // Starts another file: its keys may already exist in the shard.
  void BeginSection() { all_new_ = totals_->rows == 0; }

  absl::Status Add(const ValueBlock& rows) {
    CISTERN_RETURN_IF_ERROR(table_.CheckKeys(rows.keys));
    if (std::find(rows.has_embedx, rows.has_embedx + rows.keys.size(), kRemovedRow) !=
        rows.has_embedx + rows.keys.size()) {
      return AddWithRemoved(rows);
    }
    AddRows(rows);
    return absl::OkStatus();
  }

 private:
  void AddRows(const ValueBlock& rows) {
    if (!all_new_) ForgetOldValues(rows.keys);
    const size_t stride = table_.layout().full_floats();
    totals_->rows += rows.keys.size();
    for (size_t i = 0; i < rows.keys.size(); ++i) {
      totals_->digest += digest_(rows.keys[i], &rows.values[i * stride], rows.has_embedx[i] != 0);
    }
    if (all_new_) {
      // The keys of a section ascend, so none of them exists yet.
      CISTERN_CHECK(table_.CreateRows(local_, rows.keys, rows.values, rows.has_embedx) ==
                    rows.keys.size());
    } else {
      table_.WriteShard(local_, rows.keys, rows.values, rows.has_embedx);
    }
  }

  // The same for a block that also removes rows.
  absl::Status AddWithRemoved(const ValueBlock& block) {
    RowBatch rows;
    std::vector<Key> removed;
    const size_t stride = table_.layout().full_floats();
    for (size_t i = 0; i < block.keys.size(); ++i) {
      if (block.has_embedx[i] == kRemovedRow) {
        removed.push_back(block.keys[i]);
      } else {
        rows.Add(block.keys[i], block.values + i * stride, stride, block.has_embedx[i] != 0);
      }
    }
    ForgetOldValues(removed);
    table_.RemoveRows(local_, removed);
    AddRows({rows.keys, rows.values.data(), rows.has_embedx.data()});
    return absl::OkStatus();
  }

  void ForgetOldValues(absl::Span<const Key> keys) {
    table_.ReadShard(local_, [&](const RowMap& rows) {
      for (const RowMap::Stored& old : rows.Locate(keys)) {
        if (old.cells == nullptr) continue;
        --totals_->rows;
        totals_->digest -= digest_(old.key, old.cells, old.has_embedx);
      }
    });
  }

  SparseTable& table_;
  const uint32_t local_;
  RowDigest digest_;
  ShardTotals* const totals_;
  bool all_new_ = false;
};

}  // namespace

bool DurableState::FollowsByDelta(const ParsedManifest& newest) const {
  if (tier_.has_value()) return false;  // to open the files is as fast
  {
    absl::MutexLock lock(&mutex_);
    if (ahead_ || dirty_ || totals_stale_) return false;
  }
  const ParsedManifest mine = manifest();
  if (newest.manifest.commit() != mine.manifest.commit() + 1 ||
      newest.manifest.previous() != mine.self_xxh3 || mine.manifest.commit() == 0) {
    return false;
  }
  for (const v1::RowFile& file : chain_->FilesOf(newest.manifest)) {
    if (file.commit() == newest.manifest.commit() && file.base()) return false;
  }
  return true;
}

absl::StatusOr<PassId> DurableState::Recover(TableStore& store) {
  Forget();
  // A name that another process created may not be on disk yet, and nothing may build on it before
  // it is.
  CISTERN_RETURN_IF_ERROR(folder_->SyncManifests());
  CISTERN_ASSIGN_OR_RETURN(const std::optional<ParsedManifest> newest, folder_->NewestManifest());
  std::vector<v1::RowFile> files;
  if (newest.has_value()) {
    files = chain_->FilesOf(newest->manifest);
    CISTERN_RETURN_IF_ERROR(AddContext(store.Create(newest->manifest.schema()), folder_->path()));
  }
  const bool by_delta = newest.has_value() && FollowsByDelta(*newest);
  if (newest.has_value() && !by_delta) {
    CISTERN_RETURN_IF_ERROR(AddContext(CheckWholeCommit(newest->manifest), folder_->path()));
  }
  if (by_delta) {
    files.erase(std::remove_if(files.begin(), files.end(),
                               [&](const v1::RowFile& file) {
                                 return file.commit() != newest->manifest.commit();
                               }),
                files.end());
  } else {
    store.Clear();
    chain_->DropMerged();
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
    ahead_ = dirty_ = true;  // memory matches no commit: the next attempt reads everything
    return loaded;
  }
  if (options_.local && !folder_->owner().has_value()) {
    CISTERN_RETURN_IF_ERROR(folder_->SetOwner(rank_));
  }
  if (!newest.has_value()) {
    absl::MutexLock lock(&mutex_);
    ahead_ = dirty_ = false;
    changes_ = 0;
    return 0;
  }
  CISTERN_RETURN_IF_ERROR(chain_->KeepOlder(newest->manifest.commit()));
  TakeManifest(*newest);
  store.set_clock(newest->manifest.clock());
  store.set_days(newest->manifest.days());
  return newest->manifest.pass();
}

absl::Status DurableState::CheckOwnFiles(const v1::Manifest& manifest) const {
  std::vector<std::string> missing;
  absl::Status first;
  for (const v1::RowFile& file : chain_->FilesOf(manifest)) {
    const absl::Status opened =
        RowFileReader::Open(folder_->files(), folder_->data_path(), file).status();
    if (opened.ok()) continue;
    if (!absl::IsDataLoss(opened)) return opened;
    missing.push_back(file.name());
    first.Update(opened);
  }
  if (missing.empty()) return absl::OkStatus();
  // The folder of another server has that server's files.
  std::string whose;
  for (const v1::RowFile& file : manifest.files()) {
    if (HoldsRowsOf(file, map_, rank_) || !whose.empty()) continue;
    if (RowFileReader::Open(folder_->files(), folder_->data_path(), file).ok()) {
      whose = absl::StrCat("; this folder is that of server ", file.server());
    }
  }
  return WithOptions(
      absl::DataLossError(absl::StrCat("of commit ", manifest.commit(), ", ", missing.size(),
                                       missing.size() == 1 ? " file" : " files", " of server ",
                                       rank_, missing.size() == 1 ? " is" : " are",
                                       " not here: ", absl::StrJoin(missing, ", "), whose, " (",
                                       first.message(), "); use the folder of server ", rank_,
                                       ", or restore it from a copy: cistern ckpt pull")),
      {"cistern-server.rank", "cistern-server.data_dir"});
}

absl::Status DurableState::StoreManifest(const v1::Manifest& manifest, uint64_t self_xxh3) {
  absl::MutexLock decision(&decision_mutex_);
  const uint64_t commit = manifest.commit();
  if (!options_.local) {
    return absl::FailedPreconditionError(
        "the servers of this fleet share one state folder, so none stores the manifests of "
        "another");
  }
  if (rank_ == 0) {
    return absl::FailedPreconditionError("server 0 decides what a commit is: it stores no others");
  }
  // server_num may differ: that of the last commit before the fleet grew.
  if (manifest.cluster() != options_.cluster || manifest.shard_num() != map_.shard_num()) {
    return absl::InvalidArgumentError("the manifest belongs to another cluster or shard_num");
  }
  CISTERN_RETURN_IF_ERROR(AddContext(CheckManifest(manifest), "the manifest to store"));
  CISTERN_ASSIGN_OR_RETURN(const std::optional<ParsedManifest> newest, folder_->NewestManifest());
  const uint64_t mine = newest.has_value() ? newest->manifest.commit() : 0;
  if (mine == commit && newest->self_xxh3 == self_xxh3) return folder_->SyncManifests();
  if (mine >= commit) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder_->path(), ": its newest commit is ", mine,
        mine == commit ? ", as on server 0, but with another manifest: the two folders are not "
                         "those of one fleet"
                       : absl::StrCat(", but that of server 0 is ", commit,
                                      ": the folder of server 0 is an older copy")));
  }
  CISTERN_RETURN_IF_ERROR(AddContext(CheckOwnFiles(manifest), folder_->path()));
  if (mine + 1 != commit || manifest.previous() != (mine == 0 ? 0 : newest->self_xxh3)) {
    return absl::DataLossError(absl::StrCat(
        folder_->path(), ": commit ", commit, " does not follow the newest commit here, ", mine,
        "; restore this folder from a copy: cistern ckpt pull"));
  }
  const absl::StatusOr<uint64_t> hash = folder_->WriteManifest(manifest, self_xxh3);
  CISTERN_RETURN_IF_ERROR(hash.status());
  LogInfo(absl::StrCat("commit ", commit, " stored: pass ", manifest.pass(), ", term ",
                       manifest.epoch()));
  return absl::OkStatus();
}

absl::Status DurableState::CheckWholeCommit(const v1::Manifest& manifest) const {
  if (options_.local && map_.server_num() > 1) return CheckOwnFiles(manifest);
  std::vector<v1::RowFile> files(manifest.files().begin(), manifest.files().end());
  OrderByCommit(&files);
  // Dense tables are small; server 0 checks them for all.
  std::vector<std::unique_ptr<DenseTable>> dense;
  for (int t = 0; rank_ == 0 && t < manifest.schema().dense_tables_size(); ++t) {
    dense.push_back(std::make_unique<DenseTable>(manifest.schema().dense_tables(t), 0, 1));
  }
  std::vector<FileFooter> footers;
  for (const v1::RowFile& file : files) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<RowFileReader> reader,
                             RowFileReader::Open(folder_->files(), folder_->data_path(), file));
    for (size_t t = 0; t < dense.size(); ++t) {
      CISTERN_RETURN_IF_ERROR(TakeDenseSections(*reader, static_cast<TableId>(t), *dense[t]));
    }
    footers.push_back({reader->header(), reader->sections()});
  }
  std::vector<const FileFooter*> all;
  for (const FileFooter& footer : footers) all.push_back(&footer);
  CISTERN_RETURN_IF_ERROR(CheckTotalsOfFooters(all, manifest));
  for (size_t t = 0; t < dense.size(); ++t) {
    const v1::TableState& recorded = manifest.dense_tables(static_cast<int>(t));
    if (dense[t]->Digest() == recorded.digest()) continue;
    return absl::DataLossError(
        absl::StrCat("dense table '", recorded.name(), "' of commit ", manifest.commit(),
                     ": its files have digest ", absl::Hex(dense[t]->Digest()),
                     ", but the manifest has ", absl::Hex(recorded.digest())));
  }
  return absl::OkStatus();
}

absl::Status DurableState::LoadFiles(TableStore& store, const std::vector<v1::RowFile>& files) {
  if (tier_.has_value()) {
    CISTERN_ASSIGN_OR_RETURN(totals_, tier_->Recover(store, files));
    return absl::OkStatus();
  }
  std::vector<std::unique_ptr<RowFileReader>> readers;
  for (const v1::RowFile& file : files) {
    CISTERN_ASSIGN_OR_RETURN(readers.emplace_back(), chain_->OpenFile(file, store.schema_hash()));
  }
  totals_.resize(store.sparse_tables().size());
  // Two threads per core, because some wait for the disk.
  ThreadPool threads(2 * pool_->thread_num());
  for (size_t t = 0; t < store.sparse_tables().size(); ++t) {
    SparseTable& table = *store.sparse_tables()[t];
    totals_[t].resize(table.local_shard_num());
    std::vector<absl::Status> loaded(table.local_shard_num());
    threads.ParallelFor(loaded.size(), [&](size_t local) {
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
  const ShardSections shard_files = SectionsOf(files, id, shard);
  if (shard_files.sections.empty()) return absl::OkStatus();
  ShardLoader loader(table, local, totals);
  // Whatever row count a footer claims, reserves memory only for as many rows as the bytes can
  // hold.
  uint64_t bytes = 0;
  for (const RowSection* section : shard_files.sections) bytes += section->bytes;
  table.Expect(local, std::min(shard_files.sections.back()->total_rows, bytes / sizeof(Key)));
  for (size_t i = 0; i < shard_files.sections.size(); ++i) {
    loader.BeginSection();
    CISTERN_RETURN_IF_ERROR(
        shard_files.files[i]->ReadSparse(*shard_files.sections[i], table.layout(),
                                         [&](const ValueBlock& rows) { return loader.Add(rows); }));
  }
  return AddContext(
      CheckTotals(shard_files, *totals),
      absl::StrCat(folder_->path(), ": table '", table.spec().name(), "', shard ", shard));
}

}  // namespace cistern::server
