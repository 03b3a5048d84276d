#include "server/checkpoint/commit_reader.h"

#include "common/base/hash.h"
#include "common/value/row_digest.h"
#include "common/value/schema.h"
#include "server/checkpoint/dense_section.h"

namespace cistern::server {

absl::StatusOr<std::unique_ptr<CommitReader>> CommitReader::Open(const StateFolder& folder,
                                                                 const v1::Manifest& manifest) {
  if (folder.owner().has_value() && manifest.server_num() > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder.path(), " has the files of server ", *folder.owner(),
        " alone; copy those of all servers to one place (cistern ckpt push), and name that"));
  }
  std::unique_ptr<CommitReader> reader(new CommitReader(folder.path(), manifest));
  for (const v1::TableSpec& table : manifest.schema().tables()) {
    CISTERN_ASSIGN_OR_RETURN(ValueLayout layout, ValueLayout::CreateStored(table));
    reader->layouts_.push_back(std::move(layout));
  }
  std::vector<v1::RowFile> files(manifest.files().begin(), manifest.files().end());
  OrderByCommit(&files);
  for (const v1::RowFile& file : files) {
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<RowFileReader> rows,
                             RowFileReader::Open(folder.files(), folder.data_path(), file));
    const RowFileHeader& header = rows->header();
    if (header.cluster_id != HashBytes(manifest.cluster()) ||
        header.schema_hash != SchemaHash(manifest.schema()) ||
        header.shard_num != manifest.shard_num()) {
      return absl::DataLossError(
          absl::StrCat(folder.data_path(), "/", file.name(),
                       ": it belongs to another cluster, model or shard_num"));
    }
    reader->files_.push_back(std::move(rows));
  }
  return reader;
}

absl::Status CommitReader::ReadShard(
    TableId table, ShardIndex shard, ShardTotals* totals,
    const std::function<absl::Status(Key, const float* value, bool has_embedx)>& visit) const {
  const ValueLayout& layout = layouts_.at(table);
  const ShardSections sections = SectionsOf(files_, table, shard);
  RowDigest digest(layout);
  *totals = ShardTotals();
  CISTERN_RETURN_IF_ERROR(
      MergeRows(sections, layout, [&](const RowFileReader::Cursor& row) -> absl::Status {
        ++totals->rows;
        totals->digest += digest(row.key(), row.value(), row.has_embedx());
        return visit(row.key(), row.value(), row.has_embedx());
      }));
  return AddContext(
      CheckTotals(sections, *totals),
      absl::StrCat(path_, ": commit ", manifest_.commit(), ", table '",
                   manifest_.schema().tables(static_cast<int>(table)).name(), "', shard ", shard));
}

absl::Status CommitReader::ReadDense(TableId id, DenseTable& table) const {
  for (const std::unique_ptr<RowFileReader>& file : files_) {
    CISTERN_RETURN_IF_ERROR(TakeDenseSections(*file, id, table));
  }
  return absl::OkStatus();
}

absl::Status CommitReader::ReadShardInto(TableId id, ShardIndex shard, SparseTable& table) const {
  const ShardMap& map = table.shard_map();
  ShardTotals totals;
  return ReadShard(id, shard, &totals, [&](Key key, const float* value, bool has_embedx) {
    const ShardIndex own = map.shard(key);
    if (map.server(own) == table.rank()) table.Insert(map.local_index(own), key, value, has_embedx);
    return absl::OkStatus();
  });
}

absl::Status CommitReader::ReadInto(TableStore& store, ThreadPool& pool) const {
  CISTERN_RETURN_IF_ERROR(AddContext(store.Create(manifest_.schema()), path_));
  const ShardMap& map = store.shard_map();
  const bool same_shards = map.shard_num() == manifest_.shard_num();
  for (TableId t = 0; t < store.sparse_tables().size(); ++t) {
    SparseTable& table = *store.sparse_tables()[t];
    std::vector<absl::Status> read(manifest_.shard_num());
    pool.ParallelFor(read.size(), [&](size_t shard) {
      if (same_shards && map.server(static_cast<ShardIndex>(shard)) != store.rank()) return;
      read[shard] = ReadShardInto(t, static_cast<ShardIndex>(shard), table);
    });
    for (const absl::Status& status : read) CISTERN_RETURN_IF_ERROR(status);
  }
  for (TableId t = 0; t < store.dense_tables().size(); ++t) {
    CISTERN_RETURN_IF_ERROR(ReadDense(t, *store.dense_tables()[t]));
  }
  return absl::OkStatus();
}

}  // namespace cistern::server
