#include "server/commit/durable_state.h"

#include <algorithm>

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/value/schema.h"

namespace cistern::server {

absl::StatusOr<std::unique_ptr<DurableState>> DurableState::Open(const Options& options,
                                                                 const ShardMap& map, uint32_t rank,
                                                                 ThreadPool* pool) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<StateFolder> folder,
                           StateFolder::Open(*options.files, options.folder, rank,
                                             options.local ? map.server_num() : 0));
  CISTERN_ASSIGN_OR_RETURN(const std::optional<ParsedManifest> newest, folder->NewestManifest());
  if (newest.has_value()) {
    const v1::Manifest& manifest = newest->manifest;
    if (manifest.cluster() != options.cluster) {
      return WithOptions(
          absl::InvalidArgumentError(absl::StrCat(
              options.folder, " is the state of cluster '", manifest.cluster(), "', not of '",
              options.cluster, "'; start the server with that cluster, or with another data_dir")),
          {"cistern-server.cluster", "cistern-server.data_dir"});
    }
    if (manifest.shard_num() != map.shard_num()) {
      return WithOptions(absl::InvalidArgumentError(
                             absl::StrCat(options.folder, " has tables of ", manifest.shard_num(),
                                          " shards, but this server has ", map.shard_num(),
                                          "; start it with shard_num=", manifest.shard_num(),
                                          ", or rewrite the state: cistern ckpt reshard")),
                         {"cistern-server.shard_num"});
    }
  }
  CISTERN_ASSIGN_OR_RETURN(const Term term, folder->NewestTerm());
  const absl::Status claimable = folder->CheckTermsAreLeft(term);
  if (!claimable.ok()) LogError(std::string(claimable.message()));  // it can still be read
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<StateChain> chain,
                           StateChain::Open(folder.get(),
                                            {.local = options.local,
                                             .indexed = Tier::IsUsed(options.tier),
                                             .cluster_id = HashBytes(options.cluster),
                                             .keep_commits = options.keep_commits,
                                             .compact_min_bytes = options.compact_min_bytes,
                                             .compact_max_files = options.compact_max_files},
                                            map, rank));
  return std::unique_ptr<DurableState>(
      new DurableState(options, map, rank, pool, std::move(folder), std::move(chain)));
}

DurableState::DurableState(const Options& options, const ShardMap& map, uint32_t rank,
                           ThreadPool* pool, std::unique_ptr<StateFolder> folder,
                           std::unique_ptr<StateChain> chain)
    : options_(options),
      map_(map),
      rank_(rank),
      cluster_id_(HashBytes(options.cluster)),
      pool_(pool),
      folder_(std::move(folder)),
      chain_(std::move(chain)),
      decision_check_(folder_.get(), map_) {
  if (Tier::IsUsed(options.tier)) tier_.emplace(options.tier, map, rank, chain_.get(), pool);
}

bool DurableState::dirty() const {
  absl::MutexLock lock(&mutex_);
  return dirty_;
}

absl::StatusOr<uint64_t> DurableState::NewestManifest() const {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, folder_->Commits());
  return commits.empty() ? 0 : commits.back();
}

absl::StatusOr<bool> DurableState::NeedsRecovery() const {
  {
    absl::MutexLock lock(&mutex_);
    if (ahead_ || dirty_) return true;
  }
  return IsBehind();
}

absl::StatusOr<bool> DurableState::IsBehind() const {
  return folder_->HasManifest(commit() + 1);
}

absl::StatusOr<bool> DurableState::CanAdopt(uint64_t commit) {
  absl::StatusOr<ParsedManifest> decided = folder_->ReadManifest(commit);
  if (absl::IsNotFound(decided.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("commit ", commit, " is not decided: ", decided.status().message()));
  }
  CISTERN_RETURN_IF_ERROR(decided.status());
  if (chain_->commit() + 1 != commit) return false;
  const v1::PreparedPart part = prepared();
  const auto& files = decided->manifest.files();
  const bool mine =
      !prepared_file_.empty() && part.files_size() > 0 &&
      std::any_of(files.begin(), files.end(), [&](const v1::RowFile& file) {
        return file.SerializeAsString() == part.files(part.files_size() - 1).SerializeAsString();
      });
  if (mine) adopting_ = *std::move(decided);
  return mine;
}

void DurableState::Adopt(TableStore& store, const Staging& staging, uint64_t commit) {
  if (tier_.has_value() && commit > 0) {
    tier_->Write(store, staging, adopting_.manifest, prepared_totals_);
  } else {
    staging.Write(store, *pool_);
  }
  for (size_t t = 0; tier_.has_value() && t < prepared_totals_.size(); ++t) {
    for (uint32_t local = 0; local < prepared_totals_[t].size(); ++local) {
      store.sparse_tables()[t]->SetRows(local, prepared_totals_[t][local].rows);
    }
  }
  Adopted(staging, commit);
}

void DurableState::Adopted(const Staging& staging, uint64_t commit) {
  totals_ = prepared_totals_;
  if (commit > 0) {
    totals_stale_ = base_needed_ = false;
    for (auto& table : touched_) {
      for (std::vector<Key>& keys : table) std::vector<Key>().swap(keys);
    }
    dense_touched_.assign(dense_touched_.size(), false);
    Forget();
    TakeManifest(std::move(adopting_));
    // Garbage is collected only here: after a restart or a claim, a decision in progress may still
    // name a merged base that this server offered earlier.
    chain_->CollectGarbage(prepared_file_);
    if (options_.local && rank_ > 0) {  // server 0 has done it when it decided
      const absl::Status removed = folder_->RemoveOld(commit, options_.keep_commits);
      if (!removed.ok()) LogWarning(std::string(removed.message()));  // costs only disk space
    }
    return;
  }
  if (!base_needed_) {
    const auto sparse = staging.SparseBlocks(touched_.size());
    for (size_t t = 0; t < sparse.size(); ++t) {
      for (const ValueBlock& block : sparse[t]) {
        for (const Key key : block.keys) {
          touched_[t][map_.local_index(map_.shard(key))].push_back(key);
        }
      }
      for (size_t local = 0; local < touched_[t].size(); ++local) {
        const auto removed = staging.RemovedFrom(static_cast<TableId>(t), local);
        touched_[t][local].insert(touched_[t][local].end(), removed.begin(), removed.end());
      }
    }
  }
  for (TableId t = 0; t < dense_touched_.size(); ++t) {
    if (!staging.DensePushes(t).empty()) dense_touched_[t] = true;
  }
  Forget();
  absl::MutexLock lock(&mutex_);
  ahead_ = true;
}

void DurableState::Changed(uint64_t before,
                           const std::vector<std::vector<std::vector<Key>>>* keys) {
  totals_stale_ = true;
  if (keys == nullptr) {
    base_needed_ = true;
  } else if (!base_needed_) {
    touched_.resize(std::max(touched_.size(), keys->size()));
    for (size_t t = 0; t < keys->size(); ++t) {
      touched_[t].resize(std::max(touched_[t].size(), (*keys)[t].size()));
      for (size_t local = 0; local < (*keys)[t].size(); ++local) {
        const std::vector<Key>& changed = (*keys)[t][local];
        touched_[t][local].insert(touched_[t][local].end(), changed.begin(), changed.end());
      }
    }
  }
  absl::MutexLock lock(&mutex_);
  dirty_ = true;
  changes_ = before + 1;
}

absl::Status DurableState::CheckChanges(uint64_t changes) const {
  absl::MutexLock lock(&mutex_);
  if (changes == changes_) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("of the changes in place (clear, load, shrink, reset after a save) since the "
                   "last commit, the caller has made ",
                   changes, " and this server holds ", changes_,
                   changes > changes_ ? ": it was restarted and has lost the rest"
                                      : ": another writer has made them",
                   "; claim a new term and repeat them"));
}

void DurableState::DistrustMemory() {
  absl::MutexLock lock(&mutex_);
  ahead_ = dirty_ = true;
}

void DurableState::TakeManifest(ParsedManifest manifest) {
  chain_->Take(std::move(manifest),
               tier_.has_value() ? tier_->open_files() : StateChain::OpenFiles());
  absl::MutexLock lock(&mutex_);
  ahead_ = dirty_ = false;
  changes_ = 0;
}

void DurableState::Forget() {
  prepared_file_.clear();
  prepared_totals_.clear();
  absl::MutexLock lock(&mutex_);
  prepared_part_.Clear();
  prepared_days_.Clear();
}

v1::PreparedPart DurableState::prepared() const {
  absl::MutexLock lock(&mutex_);
  return prepared_part_;
}

v1::PassDays DurableState::prepared_days() const {
  absl::MutexLock lock(&mutex_);
  return prepared_days_;
}

absl::Status DurableState::Scrub(const TableStore& store, bool files, uint64_t* file_num,
                                 uint64_t* bytes) {
  const std::vector<v1::RowFile> chain = chain_->files();
  if (!totals_stale_) {
    for (size_t t = 0; t < totals_.size(); ++t) {
      const SparseTable& table = *store.sparse_tables()[t];
      std::vector<uint8_t> same(totals_[t].size());
      std::vector<absl::Status> read(same.size());
      pool_->ParallelFor(same.size(), [&](size_t local) {
        const absl::StatusOr<ShardTotals> totals = TotalsOf(table, static_cast<uint32_t>(local));
        read[local] = totals.status();
        same[local] = totals.ok() && *totals == totals_[t][local];
      });
      for (const absl::Status& status : read) CISTERN_RETURN_IF_ERROR(status);
      const auto bad = std::find(same.begin(), same.end(), 0);
      if (bad == same.end()) continue;
      const ShardIndex shard = map_.global_shard(rank_, static_cast<uint32_t>(bad - same.begin()));
      return absl::DataLossError(
          absl::StrCat("table '", table.spec().name(), "', shard ", shard,
                       ": the rows in memory do not match the recorded digest: memory is corrupt; "
                       "restart this server, and test its memory"));
    }
  }
  if (!files) return absl::OkStatus();
  for (const v1::RowFile& file : chain) {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<RowFileReader> reader,
                             RowFileReader::Open(folder_->files(), folder_->data_path(), file));
    CISTERN_RETURN_IF_ERROR(reader->Verify());
    ++*file_num;
    *bytes += file.bytes();
  }
  return absl::OkStatus();
}

}  // namespace cistern::server
