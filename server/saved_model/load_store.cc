#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "common/value/dense_range.h"
#include "common/value/step_clock.h"
#include "server/saved_model/load_plan.h"
#include "server/saved_model/model_snapshot.h"
#include "server/table/shard_filler.h"

namespace cistern::server {
namespace {

// Loads one shard, or a server's rows of a dense table; returns the number of rows kept.
using LoadTask = std::function<absl::StatusOr<uint64_t>()>;

v1::SaveFormat::Kind KindOf(const LoadPlan::File& file) {
  return FormOfName(file.record.name).kind();
}

// A row of a bounded table that no pass of this table has had, or only a later one of another run,
// counts as seen by `pass`, the last before the load.
void MarkSeen(const ValueLayout& layout, PassId pass, float* value) {
  if (!layout.is_bounded()) return;
  float& last_pass = value[layout.last_pass_index()];
  const float loaded = CellOfPass(pass);
  if (!(last_pass > 0 && last_pass < loaded)) last_pass = loaded;
}

// Loads one shard. Refuses a row of another shard, because no search would find it there.
absl::StatusOr<uint64_t> LoadShard(FileSystem& disk, const std::string& folder,
                                   const LoadPlan::Sparse& plan, PassId pass, SparseTable& table,
                                   uint32_t local) {
  const ShardIndex shard = table.shard_map().global_shard(table.rank(), local);
  const LoadPlan::File& file = plan.by_shard[shard];
  CISTERN_ASSIGN_OR_RETURN(const RowParser parse, plan.parser(KindOf(file)));
  std::vector<float> value(table.layout().full_floats());
  // Whatever row count a file claims, reserves memory only for as many rows as its bytes can hold.
  ShardFiller filler(table, local, std::min(file.record.rows, file.record.bytes / sizeof(Key)));
  CISTERN_RETURN_IF_ERROR(ReadRows(disk, folder, file, [&](absl::string_view row) -> absl::Status {
    Key key = 0;
    bool has_embedx = false;
    CISTERN_RETURN_IF_ERROR(parse(row, &key, value.data(), &has_embedx));
    MarkRow(table.layout(), 0, value.data());
    MarkSeen(table.layout(), pass, value.data());
    return filler.Add(key, value.data(), has_embedx);
  }));
  if (const auto repeat = filler.Finish()) {
    return AddContext(RepeatedKey(KindOf(file), repeat->number, repeat->key),
                      absl::StrCat(folder, "/", file.record.name));
  }
  return filler.rows();
}

// Appends the rows of `own` that file `i` of `n` holds to *values.
absl::Status ReadDenseFile(FileSystem& disk, const std::string& folder, const LoadPlan::Dense& plan,
                           const DenseTable& table, uint32_t i, uint32_t n,
                           std::vector<float>* values) {
  const DenseRange own = table.range();
  const DenseRange theirs = DenseRangeOf(table.spec().rows(), i, n);
  const LoadPlan::File& file = plan.files[i];
  const DenseRowParser parse = plan.parser(KindOf(file));
  const uint64_t whole = (i + uint64_t{1}) * (table.spec().rows() / n + 1);
  uint64_t row = theirs.begin;
  const auto take = [&](absl::string_view text) -> absl::Status {
    if (row == whole) return absl::DataLossError("more rows than a file of this table has");
    const bool ours = row >= own.begin && row < own.end;
    CISTERN_RETURN_IF_ERROR(ours ? parse(text, row, values) : absl::OkStatus());
    ++row;
    return absl::OkStatus();
  };
  CISTERN_RETURN_IF_ERROR(ReadRows(disk, folder, file, take));
  if (row >= theirs.end) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(folder, "/", file.record.name, " ends at row ", row,
                                          "; of ", n, " files this one must end at row ",
                                          theirs.end));
}

// Reads the rows of this server's range from every file that has some of them.
absl::StatusOr<uint64_t> LoadDense(FileSystem& disk, const std::string& folder,
                                   const LoadPlan::Dense& plan, DenseTable& table) {
  const DenseRange own = table.range();
  const uint32_t n = static_cast<uint32_t>(plan.files.size());
  std::vector<float> values;
  values.reserve((own.end - own.begin) * table.columns());
  for (uint32_t i = 0; i < n; ++i) {
    const DenseRange theirs = DenseRangeOf(table.spec().rows(), i, n);
    if (std::max(own.begin, theirs.begin) >= std::min(own.end, theirs.end)) continue;
    CISTERN_RETURN_IF_ERROR(ReadDenseFile(disk, folder, plan, table, i, n, &values));
  }
  CISTERN_RETURN_IF_ERROR(table.Write(own.begin, own.end - own.begin, values.data()));
  return own.end - own.begin;
}

// One task for each shard and dense table of this server.
std::vector<LoadTask> TasksOf(FileSystem& disk, const std::string& folder, const LoadPlan& plan,
                              TableStore& store) {
  std::vector<LoadTask> loads;
  for (size_t t = 0; t < plan.sparse.size(); ++t) {
    SparseTable& table = *store.sparse_tables()[t];
    if (plan.sparse[t].by_shard.empty()) continue;
    for (uint32_t local = 0; local < table.local_shard_num(); ++local) {
      loads.push_back([&disk, &folder, &sparse = plan.sparse[t], pass = plan.pass, &table, local] {
        return LoadShard(disk, folder, sparse, pass, table, local);
      });
    }
  }
  for (size_t t = 0; t < plan.dense.size(); ++t) {
    DenseTable& table = *store.dense_tables()[t];
    if (plan.dense[t].files.empty() || table.range().begin == table.range().end) continue;
    loads.push_back([&disk, &folder, &dense = plan.dense[t], &table] {
      return LoadDense(disk, folder, dense, table);
    });
  }
  return loads;
}

// Runs all of `loads` and skips the rest after an error; returns the number of rows kept. Uses
// twice as many threads as `pool`, because some wait for the disk.
absl::StatusOr<uint64_t> LoadAll(FileSystem& disk, const std::string& folder,
                                 const std::vector<LoadTask>& loads, const ThreadPool& pool) {
  std::vector<absl::StatusOr<uint64_t>> results(loads.size(), uint64_t{0});
  std::atomic<bool> failed{false};
  ThreadPool readers(2 * pool.thread_num());
  readers.ParallelFor(loads.size(), [&](size_t i) {
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
    return absl::AlreadyExistsError(absl::StrCat("table '", table->spec().name(), "' holds ", rows,
                                                 " rows; clear it before loading"));
  }
  for (const auto& table : store.dense_tables()) {
    if (!table->written()) continue;
    return absl::AlreadyExistsError(absl::StrCat("dense table '", table->spec().name(),
                                                 "' holds values; clear it before loading"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadTotals> LoadStore(FileSystem& disk, TableStore& store, const std::string& folder,
                                     ThreadPool& pool, const LoadOptions& options) {
  CISTERN_ASSIGN_OR_RETURN(const LoadPlan plan, PlanLoad(disk, store, folder, options));
  CISTERN_RETURN_IF_ERROR(CheckEmpty(store));
  const absl::StatusOr<uint64_t> rows =
      LoadAll(disk, folder, TasksOf(disk, folder, plan, store), pool);
  if (!rows.ok()) {
    store.Clear();
    return rows.status();
  }
  return LoadTotals{*rows, plan.pass, plan.days, plan.left_out};
}

}  // namespace cistern::server
