#include "server/checkpoint/reshard.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "common/base/hash.h"
#include "common/value/schema.h"
#include "server/checkpoint/commit_reader.h"
#include "server/checkpoint/dense_section.h"

namespace cistern::server {
namespace {

// Opens the new folder with the locks of all its servers, so that none can start while it is
// written.
absl::StatusOr<std::vector<std::unique_ptr<StateFolder>>> LockAll(FileSystem& files,
                                                                  const std::string& to,
                                                                  uint32_t server_num) {
  std::vector<std::unique_ptr<StateFolder>> folders;
  for (uint32_t server = 0; server < server_num; ++server) {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<StateFolder> folder,
                             StateFolder::Open(files, to, server));
    folders.push_back(std::move(folder));
  }
  return folders;
}

// Whether `there`, an existing manifest, is what Reshard would write.
bool IsResharded(const v1::Manifest& there, const v1::Manifest& wanted) {
  v1::Manifest a = there, b = wanted;
  for (v1::Manifest* manifest : {&a, &b}) {
    manifest->clear_created();
    manifest->clear_epoch();
    manifest->clear_files();
    manifest->set_format(kManifestFormat);
  }
  return a.SerializeAsString() == b.SerializeAsString();
}

// Writes the bases, one server at a time.
class Rewriter {
 public:
  // schema_hash: of the new state.
  Rewriter(const CommitReader& reader, const StateFolder& to, const ShardMap& map, Term term,
           uint64_t schema_hash, ThreadPool& pool)
      : reader_(reader), to_(to), map_(map), term_(term), schema_hash_(schema_hash), pool_(pool) {
    const v1::Schema& schema = reader.manifest().schema();
    sums_.resize(static_cast<size_t>(schema.tables_size() + schema.dense_tables_size()));
  }

  absl::StatusOr<v1::RowFile> WriteServer(uint32_t rank) {
    TableStore store(map_, rank);
    CISTERN_RETURN_IF_ERROR(reader_.ReadInto(store, pool_));
    RowFileHeader header;
    header.base = true;
    header.cluster_id = HashBytes(reader_.manifest().cluster());
    header.schema_hash = schema_hash_;
    header.server = rank;
    header.server_num = map_.server_num();
    header.shard_num = map_.shard_num();
    header.commit = reader_.manifest().commit();
    header.term = term_;
    const RowFileName name{true, header.commit, header.term, rank, 0};
    CISTERN_ASSIGN_OR_RETURN(
        const std::unique_ptr<RowFileWriter> writer,
        RowFileWriter::Create(to_.files(), to_.data_path(), FormatRowFileName(name), header));
    for (TableId t = 0; t < store.sparse_tables().size(); ++t) {
      CISTERN_RETURN_IF_ERROR(WriteTable(*store.sparse_tables()[t], t, *writer));
    }
    for (TableId t = 0; t < store.dense_tables().size(); ++t) {
      CISTERN_RETURN_IF_ERROR(WriteDense(*store.dense_tables()[t], t, *writer));
    }
    CISTERN_ASSIGN_OR_RETURN(const v1::RowFile file, writer->Finish());
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<RowFileReader> written,
                             RowFileReader::Open(to_.files(), to_.data_path(), file));
    CISTERN_RETURN_IF_ERROR(written->Verify());
    return file;
  }

  // kDataLoss unless the written totals match the manifest.
  absl::Status CheckSums() const {
    const v1::Manifest& manifest = reader_.manifest();
    size_t at = 0;
    for (const auto* tables : {&manifest.tables(), &manifest.dense_tables()}) {
      for (const v1::TableState& table : *tables) {
        const ShardTotals& sum = sums_[at++];
        if (sum == ShardTotals{table.rows(), table.digest()}) continue;
        return absl::DataLossError(absl::StrCat("table '", table.name(), "': ", sum.rows,
                                                " rows with digest ", absl::Hex(sum.digest),
                                                " were rewritten, but the manifest has ",
                                                table.rows(), " with ", absl::Hex(table.digest())));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status WriteTable(const SparseTable& table, TableId id, RowFileWriter& writer) {
    // Writes a few shards at a time, because their rows are in memory twice.
    const size_t shards = table.local_shard_num();
    const size_t group = static_cast<size_t>(std::max(2, pool_.thread_num()));
    for (size_t begin = 0; begin < shards; begin += group) {
      std::vector<absl::StatusOr<ShardImage>> images(std::min(group, shards - begin));
      pool_.ParallelFor(images.size(), [&](size_t i) {
        const uint32_t local = static_cast<uint32_t>(begin + i);
        images[i] = ImageOfShard(table, local, StagedRows{}, {}, ImageKind::kBase, {});
      });
      for (size_t i = 0; i < images.size(); ++i) {
        RowSection section;
        section.table = id;
        section.shard = map_.global_shard(table.rank(), static_cast<uint32_t>(begin + i));
        section.stride = table.layout().full_floats();
        CISTERN_RETURN_IF_ERROR(writer.BeginSection(section));
        CISTERN_RETURN_IF_ERROR(images[i].status());
        const ShardTotals& after = images[i]->after;
        CISTERN_RETURN_IF_ERROR(writer.Append(images[i]->blocks));
        CISTERN_RETURN_IF_ERROR(writer.EndSection(after.rows, after.digest));
        sums_[id].rows += after.rows;
        sums_[id].digest += after.digest;
      }
    }
    return absl::OkStatus();
  }

  absl::Status WriteDense(const DenseTable& table, TableId id, RowFileWriter& writer) {
    const DenseRange range = table.range();
    if (!table.written() || range.begin == range.end) return absl::OkStatus();
    ShardTotals& sum = sums_[static_cast<size_t>(reader_.manifest().tables_size()) + id];
    sum.rows += range.end - range.begin;
    sum.digest += table.Digest();
    return AppendDenseSection(table, id, writer);
  }

  const CommitReader& reader_;
  const StateFolder& to_;
  const ShardMap map_;
  const Term term_;
  const uint64_t schema_hash_;
  ThreadPool& pool_;
  std::vector<ShardTotals> sums_;  // sparse tables before dense ones
};

}  // namespace

absl::StatusOr<ReshardTotals> Reshard(const StateFolder& from, const ParsedManifest& commit,
                                      const std::string& to, const ShardMap& map, ThreadPool& pool,
                                      const std::function<void()>& wrote,
                                      const v1::Schema* schema) {
  v1::Manifest manifest = commit.manifest;
  if (schema != nullptr) *manifest.mutable_schema() = *schema;
  ReshardTotals totals;
  totals.commit = manifest.commit();
  for (const auto* tables : {&manifest.tables(), &manifest.dense_tables()}) {
    for (const v1::TableState& table : *tables) totals.rows += table.rows();
  }
  manifest.set_server_num(map.server_num());
  manifest.set_shard_num(map.shard_num());
  manifest.clear_files();
  CISTERN_ASSIGN_OR_RETURN(const auto folders, LockAll(from.files(), to, map.server_num()));
  StateFolder& folder = *folders.front();
  CISTERN_ASSIGN_OR_RETURN(const std::optional<ParsedManifest> there, folder.NewestManifest());
  if (there.has_value()) {
    if (!IsResharded(there->manifest, manifest)) {
      return absl::AlreadyExistsError(absl::StrCat(
          to, " already holds commit ", there->manifest.commit(), "; use an empty folder"));
    }
    totals.was_there = true;
    for (const v1::RowFile& file : there->manifest.files()) totals.bytes += file.bytes();
    totals.files = static_cast<uint64_t>(there->manifest.files_size());
    return totals;
  }
  // Removes what an interrupted call left.
  CISTERN_RETURN_IF_ERROR(folder.RemoveUnnamed(UINT64_MAX, {}, [](uint32_t) { return true; }));
  CISTERN_ASSIGN_OR_RETURN(const Term old_term, from.NewestTerm());
  CISTERN_ASSIGN_OR_RETURN(const Term new_term, folder.NewestTerm());
  const Term newest_term = std::max({old_term, new_term, Term{manifest.epoch()}});
  CISTERN_RETURN_IF_ERROR(from.CheckTermsAreLeft(newest_term));
  const Term term = newest_term + 1;
  CISTERN_RETURN_IF_ERROR(folder.CreateTerm(ParseClaim(term, "")));
  manifest.set_epoch(term);
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<CommitReader> reader,
                           CommitReader::Open(from, commit.manifest));
  Rewriter rewriter(*reader, folder, map, term, SchemaHash(manifest.schema()), pool);
  for (uint32_t rank = 0; rank < map.server_num(); ++rank) {
    CISTERN_ASSIGN_OR_RETURN(const v1::RowFile file, rewriter.WriteServer(rank));
    totals.bytes += file.bytes();
    ++totals.files;
    *manifest.add_files() = file;
    wrote();
  }
  CISTERN_RETURN_IF_ERROR(AddContext(rewriter.CheckSums(), from.path()));
  manifest.set_created(absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()));
  CISTERN_RETURN_IF_ERROR(folder.WriteManifest(manifest).status());
  return totals;
}

}  // namespace cistern::server
