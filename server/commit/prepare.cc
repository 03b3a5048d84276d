// DurableState::Prepare and Decide: the row file of a pass, and the manifest of its commit.
#include <algorithm>
#include <optional>

#include "absl/time/clock.h"
#include "common/base/log.h"
#include "server/checkpoint/copy_record.h"
#include "server/checkpoint/dense_section.h"
#include "server/checkpoint/in_order.h"
#include "server/commit/durable_state.h"

namespace cistern::server {
namespace {

// The number of names tried to find one that no earlier attempt of this term has taken.
constexpr uint32_t kMaxAttempts = 1000;

void AddTable(const std::string& name, uint64_t rows, uint64_t digest,
              google::protobuf::RepeatedPtrField<v1::TableState>* out) {
  v1::TableState* table = out->Add();
  table->set_name(name);
  table->set_rows(rows);
  table->set_digest(digest);
}

// The section of a shard, before its rows are known.
RowSection SectionOf(const SparseTable& table, size_t id, size_t local) {
  RowSection section;
  section.table = static_cast<TableId>(id);
  section.shard = table.shard_map().global_shard(table.rank(), static_cast<uint32_t>(local));
  section.stride = table.layout().full_floats();
  return section;
}

absl::Status NotFollowing(uint64_t commit, const std::string& why) {
  return absl::AbortedError(absl::StrCat("commit ", commit, " cannot be decided: ", why,
                                         "; claim a new term and resume from the last commit"));
}

// Whether two manifests are equal except for their time of creation, which is informational.
bool SameDecision(v1::Manifest a, v1::Manifest b) {
  a.clear_created();
  b.clear_created();
  a.set_format(kManifestFormat);
  b.set_format(kManifestFormat);
  return a.SerializeAsString() == b.SerializeAsString();
}

}  // namespace

absl::Status DurableState::Prepare(TableStore& store, const Staging& staging, Term term,
                                   bool durable, v1::PreparedPart* part) {
  Forget();
  const size_t tables = store.sparse_tables().size();
  // A base computes its totals itself.
  const bool count = totals_stale_ && !(durable && base_needed_);
  totals_.resize(tables);
  touched_.resize(tables);
  dense_touched_.resize(store.dense_tables().size());
  for (size_t t = 0; t < tables; ++t) {
    const SparseTable& table = *store.sparse_tables()[t];
    totals_[t].resize(table.local_shard_num());
    touched_[t].resize(table.local_shard_num());
    if (!count) continue;
    std::vector<absl::Status> counted(totals_[t].size());
    pool_->ParallelFor(counted.size(), [&](size_t local) {
      const absl::StatusOr<ShardTotals> totals = TotalsOf(table, static_cast<uint32_t>(local));
      counted[local] = totals.status();
      if (totals.ok()) totals_[t][local] = *totals;
    });
    for (const absl::Status& status : counted) CISTERN_RETURN_IF_ERROR(status);
  }
  if (count) totals_stale_ = false;
  prepared_totals_ = totals_;
  // Drops what an earlier attempt placed.
  for (const auto& table : store.sparse_tables()) table->DropPlaced();
  if (!durable) return WriteSparse(store, staging, nullptr);
  const absl::Status written = WriteRows(store, staging, term, part);
  if (written.ok()) return written;
  Forget();
  for (const auto& table : store.sparse_tables()) table->DropPlaced();
  return written;
}

absl::Status DurableState::AwaitCopy(const v1::PreparedPart& part, absl::Duration patience) {
  if (!options_.waits_for_copy || part.files().empty()) return absl::OkStatus();
  CopyRecord prepared;
  prepared.commit = part.files(part.files_size() - 1).commit();
  for (const v1::RowFile& file : part.files()) prepared.files.insert(file.name());
  {
    absl::MutexLock lock(&copy_mutex_);
    CISTERN_RETURN_IF_ERROR(WriteCopyRecord(folder_->files(), folder_->path(),
                                            absl::StrCat(kPreparedPrefix, rank_), prepared));
  }
  const absl::Time limit = absl::Now() + patience;
  while (true) {
    const absl::StatusOr<CopyRecord> copied =
        ReadCopyRecord(folder_->files(), folder_->path(), kCopiedRecord);
    const bool done = copied.ok() && std::includes(copied->files.begin(), copied->files.end(),
                                                   prepared.files.begin(), prepared.files.end());
    if (done) return absl::OkStatus();
    if (absl::Now() >= limit) break;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return absl::UnavailableError(
      absl::StrCat("commit ", prepared.commit,
                   " waits for the copy of this server's files, which does not have ",
                   part.files(part.files_size() - 1).name(), " yet: is cistern ckpt push copying ",
                   folder_->path(), "?"));
}

std::optional<uint64_t> DurableState::copied_commit() const {
  const absl::StatusOr<CopyRecord> copied =
      ReadCopyRecord(folder_->files(), folder_->path(), kCopiedRecord);
  if (!copied.ok()) return std::nullopt;
  return copied->commit;
}

absl::StatusOr<std::unique_ptr<RowFileWriter>> DurableState::NewFile(const RowFileHeader& header) {
  RowFileName name;
  name.base = header.base;
  name.commit = header.commit;
  name.term = header.term;
  name.server = rank_;
  for (; name.attempt < kMaxAttempts; ++name.attempt) {
    prepared_file_ = FormatRowFileName(name);
    absl::StatusOr<std::unique_ptr<RowFileWriter>> writer =
        RowFileWriter::Create(folder_->files(), folder_->data_path(), prepared_file_, header);
    if (!absl::IsAlreadyExists(writer.status())) return writer;
  }
  return absl::InternalError(absl::StrCat(folder_->data_path(), "/", prepared_file_, ": ",
                                          kMaxAttempts, " files of one pass already exist"));
}

absl::Status DurableState::WriteRows(TableStore& store, const Staging& staging, Term term,
                                     v1::PreparedPart* part) {
  RowFileHeader header;
  header.base = base_needed_;
  header.cluster_id = cluster_id_;
  header.schema_hash = store.schema_hash();
  header.server = rank_;
  header.server_num = map_.server_num();
  header.shard_num = map_.shard_num();
  header.indexed = tier_.has_value();
  header.removals =
      !header.base && (staging.RemovesRows() ||
                       std::any_of(store.sparse_tables().begin(), store.sparse_tables().end(),
                                   [](const auto& table) { return table->layout().is_bounded(); }));
  header.commit = commit() + 1;
  header.term = term;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<RowFileWriter> writer, NewFile(header));
  if (tier_.has_value() && header.base) {
    CISTERN_RETURN_IF_ERROR(WriteTieredBase(store, staging, *writer));
  } else {
    CISTERN_RETURN_IF_ERROR(WriteSparse(store, staging, writer.get()));
  }
  CISTERN_RETURN_IF_ERROR(WriteDense(store, staging, writer.get(), part));
  CISTERN_ASSIGN_OR_RETURN(const v1::RowFile file, writer->Finish());
  if (!base_needed_) {
    for (const v1::RowFile& older : chain_->Merged()) *part->add_files() = older;
  }
  *part->add_files() = file;
  for (size_t t = 0; t < prepared_totals_.size(); ++t) {
    ShardTotals sum;
    for (const ShardTotals& shard : prepared_totals_[t]) {
      sum.rows += shard.rows;
      sum.digest += shard.digest;
    }
    AddTable(store.sparse_tables()[t]->spec().name(), sum.rows, sum.digest, part->mutable_tables());
  }
  absl::MutexLock lock(&mutex_);
  prepared_part_ = *part;
  prepared_days_ = staging.days();
  return absl::OkStatus();
}

absl::Status DurableState::WriteSparse(TableStore& store, const Staging& staging,
                                       RowFileWriter* writer) {
  const ImageKind kind = writer == nullptr ? ImageKind::kTotals
                         : base_needed_    ? ImageKind::kBase
                                           : ImageKind::kDelta;
  const auto staged = staging.SparseBlocks(store.sparse_tables().size());
  // With a file, uses two threads per core, because some wait for the disk.
  std::optional<ThreadPool> writers;
  ThreadPool& threads = writer == nullptr ? *pool_ : writers.emplace(2 * pool_->thread_num());
  for (size_t t = 0; t < store.sparse_tables().size(); ++t) {
    SparseTable& table = *store.sparse_tables()[t];
    const auto ranges = RangesByShard(map_, table.local_shard_num(), staged[t]);
    // A few shards at a time, because their rows are in memory twice.
    const size_t window = 4 * static_cast<size_t>(std::max(2, pool_->thread_num()));
    const size_t block_bytes =
        tier_.has_value() ? IndexedBlockBytes(table.layout()) : kMaxBlockBytes;
    InOrder<absl::StatusOr<ShardImage>> images(
        window,
        [&](size_t local) {
          const uint32_t shard = static_cast<uint32_t>(local);
          absl::StatusOr<ShardImage> image = ImageOfShard(
              table, shard,
              {staged[t], ranges[local], staging.RemovedFrom(static_cast<TableId>(t), local)},
              touched_[t][local], kind, totals_[t][local], block_bytes);
          // A tiered table has no memory to spare, and not every new row goes there.
          if (tier_.has_value() || !image.ok()) return image;
          table.Expect(shard, image->created);
          // Done while the disk works and these rows are in the processor's caches.
          if (writer != nullptr) table.Place(shard, staged[t], ranges[local]);
          return image;
        },
        [&](size_t local, const absl::StatusOr<ShardImage>& made) -> absl::Status {
          CISTERN_RETURN_IF_ERROR(made.status());
          const ShardImage& image = *made;
          prepared_totals_[t][local] = image.after;
          if (writer == nullptr || (!base_needed_ && image.rows == 0)) return absl::OkStatus();
          CISTERN_RETURN_IF_ERROR(writer->BeginSection(SectionOf(table, t, local)));
          CISTERN_RETURN_IF_ERROR(writer->Append(image.blocks));
          return writer->EndSection(image.after.rows, image.after.digest);
        });
    CISTERN_RETURN_IF_ERROR(images.Run(ranges.size(), threads));
  }
  return absl::OkStatus();
}

absl::Status DurableState::WriteTieredBase(const TableStore& store, const Staging& staging,
                                           RowFileWriter& writer) {
  const auto staged = staging.SparseBlocks(store.sparse_tables().size());
  for (size_t t = 0; t < store.sparse_tables().size(); ++t) {
    const SparseTable& table = *store.sparse_tables()[t];
    const auto ranges = RangesByShard(map_, table.local_shard_num(), staged[t]);
    for (size_t local = 0; local < ranges.size(); ++local) {
      CISTERN_RETURN_IF_ERROR(writer.BeginSection(SectionOf(table, t, local)));
      CISTERN_ASSIGN_OR_RETURN(const ShardTotals totals,
                               StreamShard(table, static_cast<uint32_t>(local),
                                           {staged[t], ranges[local],
                                            staging.RemovedFrom(static_cast<TableId>(t), local)},
                                           IndexedBlockBytes(table.layout()),
                                           [&](const std::vector<RowBlockBuilder::Block>& blocks) {
                                             return writer.Append(blocks);
                                           }));
      prepared_totals_[t][local] = totals;
      CISTERN_RETURN_IF_ERROR(writer.EndSection(totals.rows, totals.digest));
    }
  }
  return absl::OkStatus();
}

absl::Status DurableState::WriteDense(const TableStore& store, const Staging& staging,
                                      RowFileWriter* writer, v1::PreparedPart* part) {
  for (TableId t = 0; t < store.dense_tables().size(); ++t) {
    const DenseTable& table = *store.dense_tables()[t];
    // The table after the commit: the committing code applies the pushes to a copy.
    const std::unique_ptr<DenseTable> after = table.Copy();
    staging.WriteDense(t, *after);
    const DenseRange range = after->range();
    const uint64_t rows = after->written() ? range.end - range.begin : 0;
    AddTable(table.spec().name(), rows, after->Digest(), part->mutable_dense_tables());
    const bool changed = base_needed_ || dense_touched_[t] || !staging.DensePushes(t).empty();
    if (!changed || rows == 0) continue;
    CISTERN_RETURN_IF_ERROR(AppendDenseSection(*after, t, *writer));
  }
  return absl::OkStatus();
}

absl::StatusOr<ParsedManifest> DurableState::Decide(const v1::Manifest& manifest,
                                                    const TableStore& store, bool is_prepared) {
  absl::MutexLock decision(&decision_mutex_);
  const uint64_t commit = manifest.commit();
  if (rank_ != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("server ", rank_, " was asked to decide; only server 0 decides"));
  }
  if (manifest.cluster() != options_.cluster || manifest.shard_num() != map_.shard_num() ||
      manifest.server_num() != map_.server_num()) {
    return absl::InvalidArgumentError("the manifest belongs to another cluster or placement");
  }
  CISTERN_ASSIGN_OR_RETURN(std::optional<ParsedManifest> newest, folder_->NewestManifest());
  if (newest.has_value() && newest->manifest.commit() == commit &&
      SameDecision(newest->manifest, manifest)) {
    CISTERN_RETURN_IF_ERROR(folder_->SyncManifests());
    return *std::move(newest);  // decided by an earlier call, whose answer was lost
  }
  const uint64_t expected = newest.has_value() ? newest->manifest.commit() + 1 : 1;
  if (commit != expected) {
    return NotFollowing(commit, absl::StrCat("the next one is ", expected));
  }
  if (manifest.previous() != (newest.has_value() ? newest->self_xxh3 : 0)) {
    return NotFollowing(commit, "it does not follow the newest commit");
  }
  if (!is_prepared) {
    return NotFollowing(commit, absl::StrCat("pass ", manifest.pass(),
                                             " is not prepared on server 0, which was restarted"));
  }
  CISTERN_RETURN_IF_ERROR(
      decision_check_.Check(manifest, {.pass = manifest.pass(),
                                       .schema_hash = store.schema_hash(),
                                       .prepared = prepared(),
                                       .days = prepared_days(),
                                       .own_files_only = options_.local,
                                       .newest = newest.has_value() ? &*newest : nullptr}));
  ParsedManifest dated;
  dated.manifest = manifest;
  dated.manifest.set_created(absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()));
  const absl::StatusOr<uint64_t> hash = folder_->WriteManifest(dated.manifest);
  if (absl::IsAlreadyExists(hash.status())) {
    return NotFollowing(commit, "a different manifest was already decided for it");
  }
  CISTERN_RETURN_IF_ERROR(hash.status());
  dated.self_xxh3 = *hash;
  const absl::Status removed = folder_->RemoveOld(commit, options_.keep_commits);
  if (!removed.ok()) LogWarning(std::string(removed.message()));  // costs only disk space
  return dated;
}

}  // namespace cistern::server
