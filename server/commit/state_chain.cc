#include "server/commit/state_chain.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/log.h"
#include "common/value/schema.h"
#include "server/checkpoint/shard_rows.h"

namespace cistern::server {

absl::StatusOr<std::unique_ptr<StateChain>> StateChain::Open(StateFolder* folder,
                                                             const Options& options,
                                                             const ShardMap& map, uint32_t rank) {
  CISTERN_ASSIGN_OR_RETURN(const uint32_t attempt, folder->NewestAttempt(rank));
  return std::unique_ptr<StateChain>(new StateChain(
      folder, options, map, rank, std::max(attempt, kFirstMergeAttempt) - kFirstMergeAttempt));
}

ParsedManifest StateChain::manifest() const {
  absl::MutexLock lock(&mutex_);
  return manifest_;
}

uint64_t StateChain::commit() const {
  absl::MutexLock lock(&mutex_);
  return manifest_.manifest.commit();
}

std::vector<v1::RowFile> StateChain::files() const {
  absl::MutexLock lock(&mutex_);
  return files_;
}

uint64_t StateChain::bytes() const {
  absl::MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  for (const v1::RowFile& file : files_) bytes += file.bytes();
  return bytes;
}

std::vector<v1::RowFile> StateChain::Merged() const {
  absl::MutexLock lock(&mutex_);
  const std::optional<v1::RowFile> base = compaction_.result();
  if (!base.has_value()) return files_;
  std::vector<v1::RowFile> files = {*base};
  for (const v1::RowFile& file : files_) {
    if (file.commit() > base->commit()) files.push_back(file);
  }
  return files;
}

std::vector<v1::RowFile> StateChain::FilesOf(const v1::Manifest& manifest) const {
  std::vector<v1::RowFile> files;
  for (const v1::RowFile& file : manifest.files()) {
    if (HoldsRowsOf(file, map_, rank_)) files.push_back(file);
  }
  OrderByCommit(&files);
  return files;
}

absl::StatusOr<std::unique_ptr<RowFileReader>> StateChain::OpenFile(const v1::RowFile& file,
                                                                    uint64_t schema_hash) const {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<RowFileReader> reader,
                           RowFileReader::Open(folder_->files(), folder_->data_path(), file));
  const RowFileHeader& header = reader->header();
  if (header.cluster_id == options_.cluster_id && header.schema_hash == schema_hash &&
      header.shard_num == map_.shard_num()) {
    return reader;
  }
  return absl::DataLossError(absl::StrCat(folder_->data_path(), "/", file.name(),
                                          ": it belongs to another cluster, model or shard_num"));
}

void StateChain::Take(ParsedManifest manifest, const OpenFiles& open) {
  {
    absl::MutexLock lock(&mutex_);
    manifest_ = std::move(manifest);
    files_ = FilesOf(manifest_.manifest);
    kept_.push_back(manifest_);
    if (kept_.size() > options_.keep_commits) kept_.erase(kept_.begin());
    // A merged base is done once a manifest names it. It is useless once the files start with a
    // newer base.
    const std::optional<v1::RowFile> made = compaction_.result();
    if (made.has_value() && !files_.empty() &&
        (files_.front().name() == made->name() || files_.front().commit() > made->commit())) {
      compaction_.Drop();
    }
  }
  StartCompactionIfDue(open);
}

absl::Status StateChain::KeepOlder(uint64_t newest) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, folder_->Commits());
  std::vector<ParsedManifest> kept;
  for (const uint64_t commit : commits) {
    if (commit >= newest || newest - commit >= options_.keep_commits) continue;
    absl::StatusOr<ParsedManifest> older = folder_->ReadManifest(commit);
    if (absl::IsNotFound(older.status())) continue;  // removed in the meantime
    CISTERN_RETURN_IF_ERROR(older.status());
    kept.push_back(*std::move(older));
  }
  absl::MutexLock lock(&mutex_);
  kept_ = std::move(kept);
  return absl::OkStatus();
}

void StateChain::StartCompactionIfDue(const OpenFiles& open) {
  absl::MutexLock lock(&mutex_);
  uint64_t base_bytes = 0, delta_bytes = 0;
  bool foreign = false;
  for (const v1::RowFile& file : files_) {
    (file.base() ? base_bytes : delta_bytes) += file.bytes();
    foreign |= file.server_num() != map_.server_num();
  }
  const bool due = foreign || files_.size() > options_.compact_max_files ||
                   (delta_bytes > options_.compact_min_bytes && delta_bytes > base_bytes / 2);
  if (!due) return;
  const v1::Manifest& manifest = manifest_.manifest;
  RowFileName name;
  name.base = true;
  name.commit = manifest.commit();
  name.term = manifest.epoch();
  name.server = rank_;
  // Merged bases have attempt numbers of their own: a prepared base may have the name without one,
  // and an earlier process may have merged the same files.
  name.attempt = ++merges_ + kFirstMergeAttempt;
  RowFileHeader header;
  header.base = true;
  header.cluster_id = options_.cluster_id;
  header.schema_hash = SchemaHash(manifest.schema());
  header.server = rank_;
  header.server_num = map_.server_num();
  header.shard_num = map_.shard_num();
  header.indexed = options_.indexed;
  header.commit = manifest.commit();
  header.term = manifest.epoch();
  compaction_.Start(&folder_->files(), MergePlan{folder_->data_path(), FormatRowFileName(name),
                                                 header, map_, manifest.schema(), files_, open});
}

void StateChain::CollectGarbage(const std::string& prepared) {
  std::set<std::string> named = {prepared};
  uint64_t newest;
  {
    absl::MutexLock lock(&mutex_);
    newest = manifest_.manifest.commit();
    for (const ParsedManifest& kept : kept_) {
      for (const v1::RowFile& file : kept.manifest.files()) named.insert(file.name());
    }
    named.insert(compaction_.file_name());
  }
  const absl::Status removed = folder_->RemoveUnnamed(newest, named, [this](uint32_t server) {
    return server == rank_ || options_.local || (rank_ == 0 && server >= map_.server_num());
  });
  if (!removed.ok()) LogWarning(std::string(removed.message()));  // costs only disk space
}

}  // namespace cistern::server
