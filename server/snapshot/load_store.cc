#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <vector>

#include "common/schema.h"
#include "common/value_text.h"
#include "server/snapshot/model_snapshot.h"

namespace cistern {
namespace {

using FilesByName = std::map<std::string, ModelFile>;

// Loads one file; returns the rows that were kept.
using LoadFile = std::function<absl::StatusOr<uint64_t>()>;

// The rows of one shard. A row of another shard would never be found again, so it is refused.
absl::StatusOr<uint64_t> LoadShard(FileSystem& disk, SparseTable& table, uint32_t local,
                                   const ModelFile& file, const std::string& folder) {
  const ShardIndex shard = table.shard_map().global_shard(table.rank(), local);
  std::vector<float> value(table.layout().full_floats()), present(value.size());
  const auto insert = [&](absl::string_view line) -> absl::Status {
    Key key = 0;
    bool full = false, present_full = false;
    CISTERN_RETURN_IF_ERROR(ParseValueLine(table.layout(), line, &key, value.data(), &full));
    if (table.shard_map().shard(key) != shard) {
      return absl::DataLossError(absl::StrCat("key ", key, " is of shard ",
                                              table.shard_map().shard(key), " and not of shard ",
                                              shard, ", whose file this is"));
    }
    const absl::Status usable = table.CheckKeys(absl::MakeConstSpan(&key, 1));
    if (!usable.ok()) return absl::DataLossError(usable.message());
    if (table.Find(key, present.data(), &present_full)) {
      return absl::DataLossError(absl::StrCat("key ", key, " is there for the second time"));
    }
    table.Insert(local, key, value.data(), full);
    return absl::OkStatus();
  };
  CISTERN_RETURN_IF_ERROR(ReadModelFile(disk, folder, file, insert));
  return file.rows;
}

// The rows of this server's range, from the files of every writer whose range meets it.
absl::StatusOr<uint64_t> LoadDense(FileSystem& disk, DenseTable& table, uint32_t writer_num,
                                   const FilesByName& files, const std::string& folder) {
  const DenseRange own = table.range();
  std::vector<float> values;
  values.reserve((own.end - own.begin) * table.columns());
  for (uint32_t writer = 0; writer < writer_num; ++writer) {
    const DenseRange theirs = DenseRangeOf(table.spec().rows(), writer, writer_num);
    if (std::max(own.begin, theirs.begin) >= std::min(own.end, theirs.end)) continue;
    uint64_t row = theirs.begin;
    const auto take = [&](absl::string_view line) -> absl::Status {
      const bool ours = row >= own.begin && row < own.end;
      ++row;
      return ours ? ParseDenseLine(line, table.columns(), &values) : absl::OkStatus();
    };
    const ModelFile& file = files.at(DensePartName(table.spec().name(), writer));
    CISTERN_RETURN_IF_ERROR(ReadModelFile(disk, folder, file, take));
  }
  CISTERN_RETURN_IF_ERROR(table.Write(own.begin, own.end - own.begin, values.data()));
  return own.end - own.begin;
}

// One function for each shard and dense table of this server. Every file that they read is in
// `files`: ReadParts saw to it.
std::vector<LoadFile> FilesToLoad(FileSystem& disk, TableStore& store, uint32_t writer_num,
                                  const FilesByName& files, const std::string& folder) {
  std::vector<LoadFile> loads;
  for (const auto& table : store.sparse_tables()) {
    for (uint32_t local = 0; local < table->local_shard_num(); ++local) {
      const ShardIndex shard = store.shard_map().global_shard(store.rank(), local);
      const ModelFile& file =
          files.at(SparsePartName(table->spec().name(), shard % writer_num, shard));
      loads.push_back([&disk, &table, local, &file, &folder] {
        return LoadShard(disk, *table, local, file, folder);
      });
    }
  }
  for (const auto& table : store.dense_tables()) {
    const bool saved = files.count(DensePartName(table->spec().name(), 0)) == 1;
    if (!saved || table->range().begin == table->range().end) continue;
    loads.push_back([&disk, &table, writer_num, &files, &folder] {
      return LoadDense(disk, *table, writer_num, files, folder);
    });
  }
  return loads;
}

// Runs all of `loads` on `pool`, the rest skipped after an error; returns the rows that were kept.
absl::StatusOr<uint64_t> LoadAll(const std::vector<LoadFile>& loads, ThreadPool& pool) {
  std::vector<absl::StatusOr<uint64_t>> results(loads.size(), uint64_t{0});
  std::atomic<bool> failed{false};
  pool.ParallelFor(loads.size(), [&](size_t i) {
    if (failed) return;
    results[i] = loads[i]();
    if (!results[i].ok()) failed = true;
  });
  uint64_t rows = 0;
  for (const absl::StatusOr<uint64_t>& result : results) {
    CISTERN_RETURN_IF_ERROR(result.status());
    rows += *result;
  }
  return rows;
}

absl::Status CheckEmpty(const TableStore& store) {
  for (const auto& table : store.sparse_tables()) {
    const uint64_t rows = table->counts().rows;
    if (rows == 0) continue;
    return absl::FailedPreconditionError(absl::StrCat("table '", table->spec().name(), "' holds ",
                                                      rows, " rows; clear it before loading"));
  }
  for (const auto& table : store.dense_tables()) {
    if (!table->written()) continue;
    return absl::FailedPreconditionError(absl::StrCat("dense table '", table->spec().name(),
                                                      "' holds values; clear it before loading"));
  }
  return absl::OkStatus();
}

// Makes the tables of `saved`, or checks that they are those of the store.
absl::Status TakeSchema(TableStore& store, const ModelPart& saved, const std::string& folder) {
  if (saved.shard_num != store.shard_map().shard_num()) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, " was saved with ", saved.shard_num, " shards and this server has ",
        store.shard_map().shard_num(), "; start the servers with --shard_num=", saved.shard_num));
  }
  if (store.schema_hash() != 0 && store.schema_hash() != SchemaHash(saved.schema)) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, " is a model of other tables: ", SchemaDifference(store.schema(), saved.schema),
        " (here: on this server; there: in the files)"));
  }
  return store.Create(saved.schema);
}

}  // namespace

absl::StatusOr<LoadTotals> LoadStore(FileSystem& disk, TableStore& store, const std::string& folder,
                                     ThreadPool& pool) {
  CISTERN_RETURN_IF_ERROR(CheckEmpty(store));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<ModelPart> parts, ReadParts(disk, folder));
  CISTERN_RETURN_IF_ERROR(TakeSchema(store, parts[0], folder));
  FilesByName files;
  for (const ModelPart& part : parts) {
    for (const ModelFile& file : part.files) files.emplace(file.name, file);
  }
  const auto loads = FilesToLoad(disk, store, parts[0].server_num, files, folder);
  const absl::StatusOr<uint64_t> rows = LoadAll(loads, pool);
  if (!rows.ok()) {
    store.Clear();
    return AddContext(rows.status(), absl::StrCat("loading server ", store.rank()));
  }
  return LoadTotals{*rows, parts[0].pass};
}

}  // namespace cistern
