#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "common/saved_model/table_writer.h"
#include "common/value/accessor.h"
#include "common/value/row_lifecycle.h"
#include "common/value/step_clock.h"
#include "server/saved_model/model_snapshot.h"
#include "server/table/table_lifecycle.h"

namespace cistern::server {
namespace {

// Cells formatted at a time, under a shard's lock; writing happens outside the lock.
constexpr uint64_t kBlockCells = 1 << 16;

uint64_t RowsOfBlock(uint32_t cells_of_row) {
  return std::max<uint64_t>(1, kBlockCells / cells_of_row);
}

absl::StatusOr<ModelFile> SaveShard(FileSystem& disk, const SparseTable& table,
                                    const RowReader& reader, uint32_t local,
                                    const std::string& folder, const ModelPart& part,
                                    uint32_t day) {
  const ShardIndex shard = table.shard_map().global_shard(table.rank(), local);
  const ValueLayout& layout = table.layout();
  CISTERN_ASSIGN_OR_RETURN(
      const std::unique_ptr<ShardWriter> writer,
      ShardWriter::Create(disk, folder, part, table.spec().name(), shard, layout));
  const std::unique_ptr<RowLifecycle> lifecycle = layout.accessor().MakeLifecycle(layout, day);
  const uint64_t limit = RowsOfBlock(layout.full_floats());
  std::vector<float> brought_up(reader.changes() ? layout.full_floats() : 0);
  uint64_t cursor = 0;
  do {
    const auto add = [&](Key key, const float* value, bool has_embedx) {
      if (lifecycle != nullptr && !lifecycle->IsSaved(part.mode, value)) return;
      if (reader.changes()) {
        std::copy_n(value, layout.full_floats(), brought_up.data());
        reader.BringUp(brought_up.data());
        value = brought_up.data();
      }
      writer->Add(key, value, has_embedx);
    };
    CISTERN_ASSIGN_OR_RETURN(cursor, table.Scan(local, cursor, limit, add));
    CISTERN_RETURN_IF_ERROR(writer->Flush());
  } while (cursor != 0);
  return writer->Close();
}

absl::StatusOr<ModelFile> SaveDense(FileSystem& disk, const DenseTable& table,
                                    const std::string& folder, const ModelPart& part) {
  const DenseRange range = table.range();
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<DenseWriter> writer,
                           DenseWriter::Create(disk, folder, part, table.spec(), range.begin));
  const uint64_t columns = table.columns(), limit = RowsOfBlock(table.columns());
  std::vector<float> values(limit * columns);
  for (uint64_t row = range.begin; row < range.end; row += limit) {
    const uint64_t count = std::min(limit, range.end - row);
    CISTERN_RETURN_IF_ERROR(table.Read(row, count, values.data()));
    CISTERN_RETURN_IF_ERROR(writer->Append(absl::MakeConstSpan(values).first(count * columns)));
  }
  return writer->Close();
}

using WriteFile = std::function<absl::StatusOr<ModelFile>()>;

// One function per file of this server's part.
std::vector<WriteFile> FilesToWrite(FileSystem& disk, const TableStore& store,
                                    const std::string& folder, const ModelPart& part,
                                    uint32_t day) {
  std::vector<WriteFile> files;
  const v1::StepClock clock = store.clock();
  for (TableId id = 0; id < store.sparse_tables().size(); ++id) {
    const auto& table = store.sparse_tables()[id];
    const auto reader = std::make_shared<const RowReader>(table->layout(), clock, id);
    for (uint32_t local = 0; local < table->local_shard_num(); ++local) {
      files.push_back([&disk, &table, reader, local, &folder, &part, day] {
        return SaveShard(disk, *table, *reader, local, folder, part, day);
      });
    }
  }
  for (const auto& table : store.dense_tables()) {
    if (!table->written()) continue;
    files.push_back(
        [&disk, &table, &folder, &part] { return SaveDense(disk, *table, folder, part); });
  }
  return files;
}

// Runs all of `files` and skips the rest after an error; *written then holds the files written so
// far. A thread waits for the disk about half of its time, so there are two threads for each of
// `pool`'s.
absl::Status WriteAll(const std::vector<WriteFile>& files, const ThreadPool& pool,
                      std::vector<ModelFile>* written) {
  std::vector<absl::StatusOr<ModelFile>> results(files.size(), absl::CancelledError());
  std::atomic<bool> failed{false};
  ThreadPool writers(2 * pool.thread_num());
  writers.ParallelFor(files.size(), [&](size_t i) {
    if (failed) return;
    results[i] = files[i]();
    if (!results[i].ok()) failed = true;
  });
  absl::Status status;
  for (const absl::StatusOr<ModelFile>& result : results) {
    if (result.ok()) {
      written->push_back(*result);
    } else if (status.ok() || absl::IsCancelled(status)) {
      status = result.status();
    }
  }
  return status;
}

// Removes what a failed save wrote, and the folders that are then empty.
void RemoveFiles(FileSystem& disk, const std::string& folder, const TableStore& store,
                 const std::vector<ModelFile>& files) {
  // The caller reports the error that led here, so errors of the removal are ignored.
  const auto remove = [&](const std::string& name) {
    disk.Remove(PathBelow(folder, name)).IgnoreError();
  };
  for (const ModelFile& file : files) remove(file.name);
  for (const auto& table : store.schema().tables()) remove(table.name());
  for (const auto& table : store.schema().dense_tables()) remove(table.name());
  disk.Remove(folder).IgnoreError();
}

}  // namespace

absl::StatusOr<SaveTotals> SaveStore(FileSystem& disk, const TableStore& store, PassId pass,
                                     const std::string& folder, ThreadPool& pool,
                                     const SaveOptions& options) {
  CISTERN_RETURN_IF_ERROR(CheckFormat(options.format));
  if (!v1::SaveMode_IsValid(options.mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("save mode ", static_cast<int>(options.mode), " does not exist"));
  }
  if (store.schema_hash() == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("server ", store.rank(), " has no tables yet, so there is nothing to save"));
  }
  if (options.mode == v1::DELTA || options.mode == v1::BASE) {
    CISTERN_RETURN_IF_ERROR(CheckDay(store, options.day));
  }
  ModelPart part;
  part.server = store.rank();
  part.server_num = store.shard_map().server_num();
  part.shard_num = store.shard_map().shard_num();
  part.pass = pass;
  part.commit = options.commit.number;
  part.manifest_xxh3 = options.commit.manifest_xxh3;
  part.days = store.days();
  part.mode = options.mode;
  part.format = options.format;
  part.schema = store.schema();
  if (options.instead_of.has_value()) {
    CISTERN_ASSIGN_OR_RETURN(
        const std::vector<ModelFile> old,
        UnmakePart(disk, folder, part.server, part.server_num, *options.instead_of));
    // Keeps the folders, because another server may be about to write there.
    for (const ModelFile& file : old) disk.Remove(PathBelow(folder, file.name)).IgnoreError();
  }
  CISTERN_RETURN_IF_ERROR(CheckPartIsNew(disk, folder, part.server, part.server_num));
  std::vector<ModelFile> written;
  absl::Status status =
      WriteAll(FilesToWrite(disk, store, folder, part, options.day), pool, &written);
  part.files = std::move(written);
  if (status.ok()) status = WritePart(disk, folder, part);
  if (!status.ok()) {
    // If another save of this part was faster, the files no longer belong to this call alone.
    if (!absl::IsAlreadyExists(status)) RemoveFiles(disk, folder, store, part.files);
    return AddContext(status, absl::StrCat("saving server ", store.rank()));
  }
  SaveTotals totals;
  totals.files = part.files.size();
  for (const ModelFile& file : part.files) {
    totals.rows += file.rows;
    totals.bytes += file.bytes;
    totals.file_names.push_back(file.name);
  }
  return totals;
}

}  // namespace cistern::server
