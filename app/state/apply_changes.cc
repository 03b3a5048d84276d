#include "app/state/apply_changes.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/state/increment_rows.h"
#include "common/saved_model/increment.h"
#include "common/saved_model/table_writer.h"
#include "common/value/value_layout.h"

namespace cistern::app {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;

// Writes the rows of `rows` as a saved model, and checks them against the digests of `state`.
class ModelWriter {
 public:
  ModelWriter(FileSystem& files, const RowSource& rows, std::string folder)
      : files_(files), rows_(rows), folder_(std::move(folder)) {
    part_.shard_num = rows.shard_num();
    part_.pass = rows.version().pass;
    part_.commit = rows.version().commit;
    part_.manifest_xxh3 = rows.version().manifest_xxh3;
    part_.schema = rows.schema();
  }

  absl::Status Write(const v1::IncrementState& state, const JobCalls& calls) {
    part_.days = state.days();
    AmountCounter counter(calls, "writing", "shards");
    counter.Expect(static_cast<uint64_t>(part_.schema.tables_size()) * part_.shard_num);
    for (int t = 0; t < part_.schema.tables_size(); ++t) {
      CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout,
                               ValueLayout::CreateStored(part_.schema.tables(t)));
      for (ShardIndex shard = 0; shard < part_.shard_num; ++shard, counter.Done()) {
        CISTERN_RETURN_IF_ERROR(calls.CheckStop());
        CISTERN_RETURN_IF_ERROR(WriteShard(static_cast<TableId>(t), shard, layout));
      }
    }
    for (int t = 0; t < part_.schema.dense_tables_size(); ++t) {
      CISTERN_RETURN_IF_ERROR(WriteDense(static_cast<TableId>(t)));
    }
    CISTERN_RETURN_IF_ERROR(CheckDigests(state));
    return WritePart(files_, folder_, part_);
  }
  const std::vector<ModelFile>& written() const { return part_.files; }

 private:
  absl::Status WriteShard(TableId id, ShardIndex shard, const ValueLayout& layout) {
    const std::string& name = part_.schema.tables(static_cast<int>(id)).name();
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ShardWriter> writer,
                             ShardWriter::Create(files_, folder_, part_, name, shard, layout));
    CISTERN_RETURN_IF_ERROR(
        rows_.ScanShard(id, shard, [&](Key key, const float* value, bool has_embedx) {
          writer->Add(key, value, has_embedx);
          return writer->buffered_bytes() < kFlushBytes ? absl::OkStatus() : writer->Flush();
        }));
    CISTERN_ASSIGN_OR_RETURN(part_.files.emplace_back(), writer->Close());
    return absl::OkStatus();
  }

  absl::Status WriteDense(TableId id) {
    const v1::DenseTableSpec& spec = part_.schema.dense_tables(static_cast<int>(id));
    CISTERN_ASSIGN_OR_RETURN(const std::vector<float> values, rows_.ReadDense(id));
    if (values.empty()) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<DenseWriter> writer,
                             DenseWriter::Create(files_, folder_, part_, spec, /*first_row=*/0));
    CISTERN_RETURN_IF_ERROR(writer->Append(values));
    CISTERN_ASSIGN_OR_RETURN(part_.files.emplace_back(), writer->Close());
    return absl::OkStatus();
  }

  // The files were as recorded when they were read, so this is about increments that were made of
  // other rows than they say.
  absl::Status CheckDigests(const v1::IncrementState& state) const {
    const std::optional<std::vector<v1::TableState>> found = TableStatesOf({part_});
    if (!found.has_value()) return absl::OkStatus();
    v1::IncrementState written = state;
    for (int t = 0; t < static_cast<int>(found->size()); ++t) {
      const bool sparse = t < state.tables_size();
      *(sparse ? written.mutable_tables(t)
               : written.mutable_dense_tables(t - state.tables_size())) =
          (*found)[static_cast<size_t>(t)];
    }
    if (SameRows(written, state)) return absl::OkStatus();
    return WithKind(
        absl::DataLossError(absl::StrCat(
            rows_.name(), ": the rows do not add up to the digests of ", StateText(state))),
        ErrorKind::kBadCheckpoint);
  }

  FileSystem& files_;
  const RowSource& rows_;
  const std::string folder_;
  ModelPart part_;
};

}  // namespace

absl::StatusOr<AppliedChanges> ApplyChanges(const ApplyChangesOptions& options,
                                            const JobCalls& calls) {
  LocalFileSystem files;
  CISTERN_RETURN_IF_ERROR(CheckIsNew(files, options.out));
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<RowSource> base, OpenExact(files, options.base));
  CISTERN_ASSIGN_OR_RETURN(const IncrementChain chain, ReadChain(files, options.increments));
  CISTERN_ASSIGN_OR_RETURN(const size_t first, FirstMissing(chain, *base->state(), base->name()));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> rows,
                           WithIncrements(files, std::move(base), chain, first));
  AppliedChanges applied;
  applied.state = *rows->state();
  applied.applied = chain.increments.size() - first;
  ModelWriter writer(files, *rows, options.out);
  const absl::Status written = writer.Write(applied.state, calls);
  if (!written.ok()) {
    RemoveTree(files, options.out).IgnoreError();  // it was new
    return written;
  }
  for (const ModelFile& file : writer.written()) {
    applied.rows += file.rows;
    applied.bytes += file.bytes;
  }
  return applied;
}

nlohmann::ordered_json JsonOf(const AppliedChanges& applied) {
  return {{"state", JsonOf(applied.state)},
          {"applied", applied.applied},
          {"rows", applied.rows},
          {"bytes", applied.bytes}};
}

}  // namespace cistern::app
