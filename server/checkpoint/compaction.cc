#include "server/checkpoint/compaction.h"

#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <new>

#include "common/base/log.h"
#include "common/value/dense_range.h"
#include "common/value/row_digest.h"
#include "server/checkpoint/dense_section.h"
#include "server/checkpoint/shard_rows.h"

namespace cistern::server {
namespace {

constexpr uint64_t kRowsBetweenChecks = 1 << 16;

// One merge: the readers of all files, and the writer of the new one.
class Merge {
 public:
  Merge(FileSystem& files, const MergePlan& plan, const std::function<bool()>& stop)
      : files_(files), plan_(plan), stop_(stop) {}

  absl::StatusOr<v1::RowFile> Run() {
    for (const v1::RowFile& file : plan_.files) {
      const auto open = plan_.open.find(file.name());
      if (open != plan_.open.end()) {
        readers_.push_back(open->second);
      } else {
        CISTERN_ASSIGN_OR_RETURN(readers_.emplace_back(),
                                 RowFileReader::Open(files_, plan_.folder, file));
      }
      in_order_.push_back(readers_.back().get());
    }
    CISTERN_ASSIGN_OR_RETURN(writer_,
                             RowFileWriter::Create(files_, plan_.folder, plan_.name, plan_.header));
    for (int t = 0; t < plan_.schema.tables_size(); ++t) {
      CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout,
                               ValueLayout::CreateStored(plan_.schema.tables(t)));
      const uint32_t shards = plan_.map.local_shard_num(plan_.header.server);
      for (uint32_t local = 0; local < shards; ++local) {
        const ShardIndex shard = plan_.map.global_shard(plan_.header.server, local);
        CISTERN_RETURN_IF_ERROR(MergeShard(static_cast<TableId>(t), layout, shard));
      }
    }
    for (int t = 0; t < plan_.schema.dense_tables_size(); ++t) {
      CISTERN_RETURN_IF_ERROR(MergeDense(static_cast<TableId>(t)));
    }
    return writer_->Finish();
  }

 private:
  absl::Status MergeShard(TableId table, const ValueLayout& layout, ShardIndex shard) {
    const ShardSections sections = SectionsOf(in_order_, table, shard);
    RowSection out;
    out.table = table;
    out.shard = shard;
    out.stride = layout.full_floats();
    CISTERN_RETURN_IF_ERROR(writer_->BeginSection(out));
    RowDigest digest(layout);
    ShardTotals totals;
    RowBlockBuilder builder(&layout, 0,
                            plan_.header.indexed ? IndexedBlockBytes(layout) : kMaxBlockBytes);
    CISTERN_RETURN_IF_ERROR(
        MergeRows(sections, layout, [&](const RowFileReader::Cursor& row) -> absl::Status {
          totals.digest += digest(row.key(), row.value(), row.has_embedx());
          builder.Add(row.key(), row.value(), row.has_embedx());
          if (++totals.rows % kRowsBetweenChecks == 0 && stop_()) {
            return absl::CancelledError("the merge was stopped");
          }
          return writer_->Append(builder.Take(false));
        }));
    CISTERN_RETURN_IF_ERROR(writer_->Append(builder.Take(true)));
    CISTERN_RETURN_IF_ERROR(AddContext(
        CheckTotals(sections, totals),
        absl::StrCat(plan_.folder, ": table '", plan_.schema.tables(static_cast<int>(table)).name(),
                     "', shard ", shard)));
    return writer_->EndSection(totals.rows, totals.digest);
  }

  absl::Status MergeDense(TableId id) {
    const v1::DenseTableSpec& spec = plan_.schema.dense_tables(static_cast<int>(id));
    DenseTable table(spec, plan_.header.server, plan_.map.server_num());
    for (const RowFileReader* reader : in_order_) {
      CISTERN_RETURN_IF_ERROR(TakeDenseSections(*reader, id, table));
    }
    const DenseRange range = table.range();
    if (!table.written() || range.begin == range.end) return absl::OkStatus();
    return AppendDenseSection(table, id, *writer_);
  }

  FileSystem& files_;
  const MergePlan& plan_;
  const std::function<bool()>& stop_;
  std::vector<std::shared_ptr<const RowFileReader>> readers_;
  std::vector<const RowFileReader*> in_order_;
  std::unique_ptr<RowFileWriter> writer_;
};

}  // namespace

absl::StatusOr<v1::RowFile> MergeRowFiles(FileSystem& files, const MergePlan& plan,
                                          const std::function<bool()>& stop) {
  return Merge(files, plan, stop).Run();
}

bool HoldsRowsOf(const v1::RowFile& file, const ShardMap& map, uint32_t rank) {
  // Dense ranges of two different placements nearly always overlap; the rest is exact.
  return file.server_num() != map.server_num() || file.server() == rank;
}

Compaction::~Compaction() {
  stopping_ = true;
}

bool Compaction::Start(FileSystem* files, MergePlan plan) {
  {
    absl::MutexLock lock(&mutex_);
    if (running_ || result_.has_value()) return false;
    running_ = true;
    dropped_ = false;
    name_ = plan.name;
  }
  try {
    thread_.Run([this, files, plan = std::move(plan)] { Run(files, plan); });
  } catch (const std::bad_alloc&) {
    absl::MutexLock lock(&mutex_);
    running_ = false;
    return false;
  }
  return true;
}

void Compaction::Run(FileSystem* files, const MergePlan& plan) {
  // On Linux this affects only this thread. Pulls and training have priority.
  setpriority(PRIO_PROCESS, 0, 15);
  const absl::StatusOr<v1::RowFile> base = [&]() -> absl::StatusOr<v1::RowFile> {
    try {
      return MergeRowFiles(*files, plan, [this] {
        absl::MutexLock lock(&mutex_);
        return stopping_ || dropped_;
      });
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("out of memory");
    }
  }();
  if (!base.ok() && !absl::IsCancelled(base.status())) {
    LogWarning(absl::StrCat("no new base was written: ", std::string(base.status().message())));
  }
  absl::MutexLock lock(&mutex_);
  running_ = false;
  if (base.ok() && !dropped_) {
    result_ = *base;
  } else {
    name_.clear();  // leftovers are removed with the other unnamed files
  }
}

std::optional<v1::RowFile> Compaction::result() const {
  absl::MutexLock lock(&mutex_);
  return result_;
}

void Compaction::Drop() {
  absl::MutexLock lock(&mutex_);
  dropped_ = true;
  result_.reset();
  if (!running_) name_.clear();
}

std::string Compaction::file_name() const {
  absl::MutexLock lock(&mutex_);
  return name_;
}

void Compaction::AwaitIdle() const {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](const bool* running) { return !*running; }, &running_));
}

}  // namespace cistern::server
