#include "app/state/save_changes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "app/state/commit_changes.h"
#include "app/state/increment_rows.h"
#include "app/state/saved_place.h"
#include "app/state/saved_rows.h"
#include "common/saved_model/increment.h"
#include "common/saved_model/model_rows.h"
#include "common/value/schema.h"
#include "server/table/value_block.h"

namespace cistern::app {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

// The earlier state.
struct Earlier {
  v1::IncrementState state;
  std::unique_ptr<RowSource> rows;  // null: they cannot be read
  std::string name;
};

// Writes one increment, table by table.
class IncrementWriter {
 public:
  IncrementWriter(FileSystem& files, std::string folder, const v1::SaveFormat& format)
      : files_(files), folder_(std::move(folder)), format_(format) {}

  absl::Status BeginSparse(const v1::TableSpec& spec) {
    CISTERN_ASSIGN_OR_RETURN(ValueLayout layout, ValueLayout::CreateStored(spec));
    layout_.emplace(std::move(layout));
    table_ = spec.name();
    CISTERN_ASSIGN_OR_RETURN(file_, Create(IncrementRowsName(table_, format_)));
    return absl::OkStatus();
  }
  // value: unpacked, of bfloat16 if the table has 16-bit rows.
  absl::Status ChangedFloats(Key key, const float* value, bool has_embedx) {
    if (!layout_->is_packed()) return Changed(key, value, has_embedx);
    packed_.resize(layout_->full_floats());
    layout_->Pack(value, packed_.data());
    return Changed(key, packed_.data(), has_embedx);
  }
  absl::Status Changed(Key key, const float* value, bool has_embedx) {
    AppendRow(format_, *layout_, key, value, has_embedx, &buffer_);
    ++buffered_rows_;
    ++totals_.rows;
    return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
  }
  void Removed(Key key) { removed_.push_back(key); }
  absl::Status EndSparse() {
    CISTERN_RETURN_IF_ERROR(Flush());
    CISTERN_RETURN_IF_ERROR(CloseFile());
    if (removed_.empty()) return absl::OkStatus();
    std::sort(removed_.begin(), removed_.end());
    CISTERN_ASSIGN_OR_RETURN(file_, Create(IncrementRemovedName(table_, format_)));
    for (const Key key : removed_) {
      absl::StrAppend(&buffer_, key, "\n");
      ++buffered_rows_;
      if (buffer_.size() >= kBufferBytes) CISTERN_RETURN_IF_ERROR(Flush());
    }
    totals_.removed += removed_.size();
    removed_.clear();
    CISTERN_RETURN_IF_ERROR(Flush());
    return CloseFile();
  }

  // values: [rows, columns]; empty: never written.
  absl::Status AddDense(const v1::DenseTableSpec& spec, const std::vector<float>& values) {
    if (values.empty()) return absl::OkStatus();
    CISTERN_ASSIGN_OR_RETURN(file_, Create(IncrementRowsName(spec.name(), format_)));
    const size_t columns = static_cast<size_t>(spec.columns_size());
    for (uint64_t row = 0; row < spec.rows(); ++row) {
      AppendDenseRow(format_, spec, row,
                     absl::MakeConstSpan(values).subspan(row * columns, columns), &buffer_);
      ++buffered_rows_;
      if (buffer_.size() >= kBufferBytes) CISTERN_RETURN_IF_ERROR(Flush());
    }
    CISTERN_RETURN_IF_ERROR(Flush());
    return CloseFile();
  }

  absl::StatusOr<SavedChanges> Finish(v1::Increment increment) {
    *increment.mutable_files() = {listed_.begin(), listed_.end()};
    CISTERN_RETURN_IF_ERROR(WriteIncrement(files_, folder_, increment));
    totals_.increment = std::move(increment);
    return totals_;
  }

 private:
  absl::StatusOr<std::unique_ptr<ModelFileWriter>> Create(const std::string& name) {
    return ModelFileWriter::Create(files_, folder_, name);
  }
  absl::Status Flush() {
    CISTERN_RETURN_IF_ERROR(file_->Append(buffer_, buffered_rows_));
    buffer_.clear();
    buffered_rows_ = 0;
    return absl::OkStatus();
  }
  absl::Status CloseFile() {
    CISTERN_ASSIGN_OR_RETURN(const ModelFile written, file_->Close());
    v1::IncrementFile& listed = listed_.emplace_back();
    listed.set_name(written.name);
    listed.set_rows(written.rows);
    listed.set_bytes(written.bytes);
    listed.set_xxh3(written.xxh3);
    totals_.bytes += written.bytes;
    return absl::OkStatus();
  }

  FileSystem& files_;
  const std::string folder_;
  const v1::SaveFormat format_;
  std::string table_;                  // the open sparse table
  std::optional<ValueLayout> layout_;  // its layout
  std::unique_ptr<ModelFileWriter> file_;
  std::vector<float> packed_;
  std::string buffer_;
  uint64_t buffered_rows_ = 0;
  std::vector<Key> removed_;
  std::vector<v1::IncrementFile> listed_;
  SavedChanges totals_;
};

// The number of a commit; 0 if the text is something else.
uint64_t CommitOf(const std::vector<std::string>& since) {
  uint64_t commit = 0;
  return since.size() == 1 && absl::SimpleAtoi(since[0], &commit) ? commit : 0;
}

absl::StatusOr<Earlier> FindEarlier(FileSystem& files, const SaveChangesOptions& options) {
  if (options.since.empty() || options.since[0].empty()) {
    return WithFix(absl::InvalidArgumentError("the earlier state is not named"),
                   "name a commit, or the folder that the last save has written");
  }
  Earlier earlier;
  if (const uint64_t commit = CommitOf(options.since); commit > 0) {
    RowsPlace place = ParseRowsPlace(options.state);
    CISTERN_ASSIGN_OR_RETURN(earlier.rows, OpenExact(files, absl::StrCat(place.path, "@", commit)));
  } else {
    CISTERN_ASSIGN_OR_RETURN(const bool is_increment, IsIncrement(files, options.since[0]));
    if (is_increment) {
      CISTERN_ASSIGN_OR_RETURN(const IncrementChain chain, ReadChain(files, options.since));
      return Earlier{chain.increments.back().to(), nullptr, chain.folders.back()};
    }
    CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<RowSource> base, OpenExact(files, options.since[0]));
    CISTERN_ASSIGN_OR_RETURN(const IncrementChain chain,
                             ReadChain(files, {options.since.begin() + 1, options.since.end()}));
    CISTERN_ASSIGN_OR_RETURN(const size_t first, FirstMissing(chain, *base->state(), base->name()));
    CISTERN_ASSIGN_OR_RETURN(earlier.rows, WithIncrements(files, std::move(base), chain, first));
  }
  earlier.name = earlier.rows->name();
  earlier.state = *earlier.rows->state();
  return earlier;
}

// The rows that commits have changed since `earlier`, from their files; null if these do not tell.
absl::StatusOr<std::unique_ptr<CommittedModel>> ChangesFromFiles(
    const server::StateFolder& state, const server::ParsedManifest& newest,
    const Earlier& earlier) {
  const uint64_t since = earlier.state.commit();
  if (since == 0 || since >= newest.manifest.commit()) return nullptr;
  // Whether it is a commit of this state: by its manifest, or by the one after it.
  const absl::StatusOr<server::ParsedManifest> own = state.ReadManifest(since);
  const absl::StatusOr<server::ParsedManifest> next = state.ReadManifest(since + 1);
  if (!own.ok() && !next.ok()) return nullptr;
  const uint64_t hash = own.ok() ? own->self_xxh3 : next->manifest.previous();
  if (hash != earlier.state.manifest_xxh3()) return nullptr;
  return ReadCommitChanges(state, newest, since);
}

// The difference of one sparse table, by reading all rows of both states.
absl::Status Compare(const RowSource& before, const RowSource& after, TableId id,
                     const JobCalls& calls, AmountCounter& counter, IncrementWriter& writer) {
  const v1::TableSpec& spec = after.schema().tables(static_cast<int>(id));
  CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::CreateStored(spec));
  const size_t stride = layout.full_floats();
  for (ShardIndex shard = 0; shard < after.shard_num(); ++shard, counter.Done()) {
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
    server::RowBatch old;
    absl::flat_hash_map<Key, size_t> places;
    CISTERN_RETURN_IF_ERROR(
        before.ScanShard(id, shard, [&](Key key, const float* value, bool has_embedx) {
          places.emplace(key, old.size());
          old.Add(key, value, stride, has_embedx);
          return absl::OkStatus();
        }));
    CISTERN_RETURN_IF_ERROR(
        after.ScanShard(id, shard, [&](Key key, const float* value, bool has_embedx) {
          const auto place = places.find(key);
          if (place == places.end()) return writer.Changed(key, value, has_embedx);
          const size_t i = place->second;
          places.erase(place);
          const size_t bytes = layout.floats(has_embedx) * sizeof(float);
          const bool same = (old.has_embedx[i] != 0) == has_embedx &&
                            std::memcmp(&old.values[i * stride], value, bytes) == 0;
          return same ? absl::OkStatus() : writer.Changed(key, value, has_embedx);
        }));
    for (const auto& [key, place] : places) writer.Removed(key);
  }
  return absl::OkStatus();
}

absl::Status CheckComparable(const Earlier& earlier, const RowSource& after) {
  if (earlier.rows == nullptr) {
    return WithFix(
        absl::FailedPreconditionError(absl::StrCat("what changed since ", StateText(earlier.state),
                                                   " is not known any more: the row "
                                                   "files that tell it were merged or removed")),
        "name the whole saved model and all increments since, in order: both states are then "
        "compared; or keep more commits");
  }
  const std::string difference = SchemaDifference(earlier.rows->schema(), after.schema());
  if (!difference.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(after.name(), " has other tables than ", earlier.name, ": ", difference));
  }
  if (earlier.rows->shard_num() == after.shard_num()) return absl::OkStatus();
  return WithFix(absl::InvalidArgumentError(absl::StrCat(
                     after.name(), " has tables of ", after.shard_num(), " shards, and ",
                     earlier.name, " of ", earlier.rows->shard_num())),
                 "save the whole model instead");
}

// Refuses a format that would not hold every bit.
absl::Status CheckExact(const v1::SaveFormat& format, const v1::Schema& schema) {
  CISTERN_RETURN_IF_ERROR(CheckFormat(format));
  bool exact = IsExact(format);
  for (const v1::DenseTableSpec& table : schema.dense_tables()) {
    exact = exact && IsExact(format, table);
  }
  if (exact) return absl::OkStatus();
  return WithOptions(
      absl::InvalidArgumentError("this format does not keep every bit of these tables, as an "
                                 "increment must"),
      {"format=binary"});
}

// A training that goes on may have removed the commit while it was read; then nothing is corrupt.
absl::Status WithRemoval(const absl::Status& status, const server::StateFolder& state,
                         uint64_t commit) {
  const absl::StatusOr<bool> is_kept = state.HasManifest(commit);
  if (!is_kept.ok() || *is_kept) return status;
  return WithFix(absl::AbortedError(
                     absl::StrCat("a training has removed commit ", commit, " while it was read")),
                 "repeat it, or let the training keep more commits");
}

absl::Status WriteTables(const RowSource& after, const Earlier& earlier, CommittedModel* changes,
                         const JobCalls& calls, IncrementWriter& writer) {
  AmountCounter counter(calls, "saving changes", changes == nullptr ? "shards" : "tables");
  const v1::Schema& schema = after.schema();
  const uint64_t tables = static_cast<uint64_t>(schema.tables_size());
  counter.Expect(changes == nullptr ? tables * after.shard_num() : tables);
  for (TableId id = 0; id < tables; ++id) {
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
    CISTERN_RETURN_IF_ERROR(writer.BeginSparse(schema.tables(static_cast<int>(id))));
    if (changes == nullptr) {
      CISTERN_RETURN_IF_ERROR(Compare(*earlier.rows, after, id, calls, counter, writer));
    } else {
      CISTERN_RETURN_IF_ERROR(
          changes->Scan(id, [&](uint32_t, Key key, const float* value, bool has_embedx) {
            return writer.ChangedFloats(key, value, has_embedx);
          }));
      CISTERN_RETURN_IF_ERROR(changes->ScanRemoved(id, [&](Key key) {
        writer.Removed(key);
        return absl::OkStatus();
      }));
      counter.Done();
    }
    CISTERN_RETURN_IF_ERROR(writer.EndSparse());
  }
  for (TableId id = 0; id < static_cast<TableId>(schema.dense_tables_size()); ++id) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<float> values, after.ReadDense(id));
    CISTERN_RETURN_IF_ERROR(writer.AddDense(schema.dense_tables(static_cast<int>(id)), values));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SavedChanges> SaveChanges(const SaveChangesOptions& options, const JobCalls& calls) {
  LocalFileSystem local;
  FileSystem& files = options.files == nullptr ? local : *options.files;
  CISTERN_RETURN_IF_ERROR(CheckIsNew(files, options.out));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> after, OpenExact(files, options.state));
  CISTERN_RETURN_IF_ERROR(CheckExact(options.format, after->schema()));
  CISTERN_ASSIGN_OR_RETURN(const Earlier earlier, FindEarlier(files, options));
  const v1::IncrementState to = *after->state();
  std::unique_ptr<server::StateFolder> state;
  std::unique_ptr<CommittedModel> changes;
  if (absl::StatusOr<std::unique_ptr<server::StateFolder>> found =
          FindState(files, ParseRowsPlace(options.state).path);
      found.ok()) {
    state = *std::move(found);
    CISTERN_ASSIGN_OR_RETURN(const server::ParsedManifest newest, ReadCommit(*state, to.commit()));
    CISTERN_ASSIGN_OR_RETURN(changes, ChangesFromFiles(*state, newest, earlier));
  }
  if (changes == nullptr) CISTERN_RETURN_IF_ERROR(CheckComparable(earlier, *after));
  v1::Increment increment;
  *increment.mutable_from() = earlier.state;
  *increment.mutable_to() = to;
  increment.set_shard_num(after->shard_num());
  *increment.mutable_schema() = after->schema();
  IncrementWriter writer(files, options.out, options.format);
  const absl::Status written = WriteTables(*after, earlier, changes.get(), calls, writer);
  absl::StatusOr<SavedChanges> saved =
      written.ok() ? writer.Finish(std::move(increment)) : absl::StatusOr<SavedChanges>(written);
  if (!saved.ok()) {
    RemoveTree(files, options.out).IgnoreError();  // it was new
    return state == nullptr ? saved.status() : WithRemoval(saved.status(), *state, to.commit());
  }
  saved->compared = changes == nullptr;
  return saved;
}

nlohmann::ordered_json JsonOf(const SavedChanges& saved) {
  return {{"from", JsonOf(saved.increment.from())},
          {"to", JsonOf(saved.increment.to())},
          {"rows", saved.rows},
          {"removed", saved.removed},
          {"bytes", saved.bytes},
          {"compared", saved.compared}};
}

}  // namespace cistern::app
