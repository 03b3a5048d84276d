#include "app/state/saved_rows.h"

#include <algorithm>

#include "app/state/saved_place.h"
#include "common/saved_model/model_rows.h"
#include "common/saved_model/saved_commit.h"
#include "common/value/step_clock.h"
#include "server/checkpoint/commit_reader.h"
#include "server/saved_model/model_snapshot.h"

namespace cistern::app {
namespace {

class CommitRows : public SavedRows {
 public:
  CommitRows(std::string name, std::unique_ptr<server::CommitReader> reader, uint64_t manifest_xxh3)
      : name_(std::move(name)), reader_(std::move(reader)), manifest_xxh3_(manifest_xxh3) {}
  const v1::Schema& schema() const override { return reader_->manifest().schema(); }
  uint32_t shard_num() const override { return reader_->manifest().shard_num(); }
  CommittedVersion version() const override {
    return {reader_->manifest().commit(), manifest_xxh3_, reader_->manifest().pass()};
  }
  v1::StepClock clock() const override { return reader_->manifest().clock(); }
  std::string name() const override { return name_; }
  absl::Status Read(server::TableStore& store, ThreadPool& pool) const override {
    return WithKind(reader_->ReadInto(store, pool), ErrorKind::kBadCheckpoint);
  }
  std::optional<v1::IncrementState> state() const override {
    const v1::Manifest& manifest = reader_->manifest();
    v1::IncrementState state;
    state.set_commit(manifest.commit());
    state.set_manifest_xxh3(manifest_xxh3_);
    state.set_pass(manifest.pass());
    *state.mutable_tables() = manifest.tables();
    *state.mutable_dense_tables() = manifest.dense_tables();
    if (manifest.has_days()) *state.mutable_days() = manifest.days();
    return state;
  }
  absl::Status ScanShard(TableId table, ShardIndex shard, const Visit& visit) const override {
    server::ShardTotals totals;
    return WithKind(reader_->ReadShard(table, shard, &totals, visit), ErrorKind::kBadCheckpoint);
  }
  absl::StatusOr<std::vector<float>> ReadDense(TableId id) const override {
    server::DenseTable table(schema().dense_tables(static_cast<int>(id)), /*rank=*/0,
                             /*server_num=*/1);
    CISTERN_RETURN_IF_ERROR(WithKind(reader_->ReadDense(id, table), ErrorKind::kBadCheckpoint));
    if (!table.written()) return std::vector<float>();
    std::vector<float> values(table.spec().rows() * table.columns());
    CISTERN_RETURN_IF_ERROR(table.Read(0, table.spec().rows(), values.data()));
    return values;
  }

 private:
  const std::string name_;
  const std::unique_ptr<server::CommitReader> reader_;
  const uint64_t manifest_xxh3_;
};

class ModelRows : public SavedRows {
 public:
  ModelRows(FileSystem& files, std::string folder, const std::vector<ModelPart>& parts)
      : files_(files),
        folder_(std::move(folder)),
        parts_(parts),
        part_(parts_.front()),
        commit_(CommitOfModel(files, folder_, parts)) {
    for (const v1::TableSpec& table : part_.schema.tables()) {
      by_shard_.push_back(FilesByShard(table.name(), parts_));
    }
  }
  const v1::Schema& schema() const override { return part_.schema; }
  uint32_t shard_num() const override { return part_.shard_num; }
  CommittedVersion version() const override {
    return {commit_.number, commit_.manifest_xxh3, part_.pass};
  }
  v1::StepClock clock() const override { return {}; }  // a save applies deferred updates
  std::string name() const override { return folder_; }
  absl::Status Read(server::TableStore& store, ThreadPool& pool) const override {
    return WithKind(server::LoadStore(files_, store, folder_, pool).status(),
                    ErrorKind::kBadCheckpoint);
  }
  std::optional<v1::IncrementState> state() const override {
    const std::optional<std::vector<v1::TableState>> tables = TableStatesOf(parts_);
    if (!tables.has_value() || part_.mode != v1::ALL) return std::nullopt;
    v1::IncrementState state;
    state.set_commit(commit_.number);
    state.set_manifest_xxh3(commit_.manifest_xxh3);
    state.set_pass(part_.pass);
    if (!part_.days.days().empty()) *state.mutable_days() = part_.days;
    for (int t = 0; t < static_cast<int>(tables->size()); ++t) {
      const bool sparse = t < schema().tables_size();
      *(sparse ? state.add_tables() : state.add_dense_tables()) = (*tables)[static_cast<size_t>(t)];
    }
    return state;
  }
  absl::Status ScanShard(TableId table, ShardIndex shard, const Visit& visit) const override {
    return WithKind(ReadShard(table, shard, visit), ErrorKind::kBadCheckpoint);
  }
  absl::StatusOr<std::vector<float>> ReadDense(TableId id) const override {
    const v1::DenseTableSpec& spec = schema().dense_tables(static_cast<int>(id));
    const DenseRowParser parse = DenseParserOf(part_.format.kind(), spec);
    std::vector<float> values;
    uint64_t row = 0;
    for (const std::optional<ModelFile>& file : FilesByServer(spec.name(), parts_)) {
      if (!file.has_value()) continue;
      const absl::Status read =
          ReadModelFile(files_, folder_, *file, [&](absl::string_view text) -> absl::Status {
            if (row == spec.rows()) return absl::DataLossError("more rows than the table has");
            return parse(text, row++, &values);
          });
      CISTERN_RETURN_IF_ERROR(WithKind(read, ErrorKind::kBadCheckpoint));
    }
    return values;
  }

 private:
  absl::Status ReadShard(TableId id, ShardIndex shard, const Visit& visit) const {
    const v1::TableSpec& spec = schema().tables(static_cast<int>(id));
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout, ValueLayout::CreateStored(spec));
    const RowParser parse = ParserOf(part_.format.kind(), layout);
    std::vector<float> value(layout.full_floats());
    const ModelFile& file = by_shard_.at(id).at(shard);
    return ReadModelFile(files_, folder_, file, [&](absl::string_view row) -> absl::Status {
      Key key = 0;
      bool has_embedx = false;
      CISTERN_RETURN_IF_ERROR(parse(row, &key, value.data(), &has_embedx));
      MarkRow(layout, 0, value.data());
      if (key % shard_num() != shard) {
        return absl::DataLossError(absl::StrCat("key ", key, " belongs to shard ",
                                                key % shard_num(), ", not to shard ", shard));
      }
      return visit(key, value.data(), has_embedx);
    });
  }

  FileSystem& files_;
  const std::string folder_;
  const std::vector<ModelPart> parts_;
  const ModelPart& part_;
  const SavedCommit commit_;
  std::vector<std::vector<ModelFile>> by_shard_;  // [table][shard]
};

// The rows of one state, in tables of this process that hold all shards.
class StoredModel : public CommittedModel {
 public:
  StoredModel(const SavedRows& rows, const ShardMap& map)
      : name_(rows.name()),
        version_(rows.version()),
        shard_num_(map.shard_num()),
        store_(map, /*rank=*/0) {}

  absl::Status Read(const SavedRows& rows, ThreadPool& pool) {
    CISTERN_RETURN_IF_ERROR(rows.Read(store_, pool));
    for (TableId id = 0; id < store_.sparse_tables().size(); ++id) {
      readers_.emplace_back(store_.sparse_tables()[id]->layout().unpacked(), rows.clock(), id);
    }
    return absl::OkStatus();
  }

  const std::string& name() const override { return name_; }
  CommittedVersion version() const override { return version_; }
  const v1::Schema& schema() const override { return store_.schema(); }
  uint32_t shard_num() const override { return shard_num_; }

  absl::Status Scan(TableId id, const Visit& visit) override {
    CISTERN_ASSIGN_OR_RETURN(const server::SparseTable* table, store_.sparse(id));
    const ValueLayout& layout = table->layout();
    std::vector<float> value(layout.unpacked().full_floats());
    absl::Status status;
    for (uint32_t shard = 0; shard < table->local_shard_num(); ++shard) {
      uint64_t cursor = 0;
      do {
        constexpr size_t kRows = 4096;
        const auto bring_up = [&](Key key, const float* row, bool has_embedx) {
          if (!status.ok()) return;
          layout.Unpack(row, value.data());
          readers_[id].BringUp(value.data());
          status = visit(shard, key, value.data(), has_embedx);
        };
        CISTERN_ASSIGN_OR_RETURN(cursor, table->Scan(shard, cursor, kRows, bring_up));
        CISTERN_RETURN_IF_ERROR(status);
      } while (cursor != 0);
    }
    return absl::OkStatus();
  }

  absl::Status Pull(TableId id, absl::Span<const Key> keys, float* values,
                    uint8_t* has_embedx) override {
    CISTERN_ASSIGN_OR_RETURN(const server::SparseTable* table, store_.sparse(id));
    const ValueLayout& layout = table->layout();
    const size_t stride = layout.unpacked().full_floats();
    std::vector<float> stored(layout.is_packed() ? keys.size() * layout.full_floats() : 0);
    CISTERN_RETURN_IF_ERROR(table->Pull(keys, /*absent_is_zero=*/true,
                                        layout.is_packed() ? stored.data() : values, has_embedx));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (has_embedx[i] == kAbsent) {
        return absl::InternalError(absl::StrCat(name_, ": no row of key ", keys[i]));
      }
      if (layout.is_packed()) {
        layout.Unpack(&stored[i * layout.full_floats()], values + i * stride);
      }
      readers_[id].BringUp(values + i * stride);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<float>> PullDense(TableId id) override {
    CISTERN_ASSIGN_OR_RETURN(const server::DenseTable* table, store_.dense(id));
    std::vector<float> values(table->spec().rows() * table->columns());
    CISTERN_RETURN_IF_ERROR(
        AddContext(table->Read(0, table->spec().rows(), values.data()),
                   absl::StrCat(name_, ", table '", table->spec().name(), "'")));
    return values;
  }

  absl::Status Recheck() override { return absl::OkStatus(); }  // files of commits never change

 private:
  const std::string name_;
  const CommittedVersion version_;
  const uint32_t shard_num_;
  server::TableStore store_;
  std::vector<RowReader> readers_;  // by table
};

}  // namespace

absl::StatusOr<std::unique_ptr<SavedRows>> SavedRows::Open(FileSystem& files,
                                                           const RowsPlace& place) {
  const absl::StatusOr<std::unique_ptr<server::StateFolder>> state = FindState(files, place.path);
  if (state.ok()) {
    CISTERN_ASSIGN_OR_RETURN(const server::ParsedManifest manifest,
                             ReadCommit(**state, place.commit));
    absl::StatusOr<std::unique_ptr<server::CommitReader>> reader =
        server::CommitReader::Open(**state, manifest.manifest);
    if (!reader.ok()) return WithKind(reader.status(), ErrorKind::kBadCheckpoint);
    return std::make_unique<CommitRows>(
        absl::StrCat((*state)->path(), ", commit ", manifest.manifest.commit()), *std::move(reader),
        manifest.self_xxh3);
  }
  if (!absl::IsNotFound(state.status())) return state.status();
  const std::string named =
      place.commit == 0 ? place.path : absl::StrCat(place.path, "@", place.commit);
  const absl::StatusOr<std::vector<ModelPart>> parts = ReadParts(files, named);
  if (absl::IsNotFound(parts.status())) {
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(named, " is neither a commit nor a saved model")),
        "name a data_dir of servers or its folder state (append @COMMIT for an older commit), or "
        "the folder of a saved model");
  }
  if (!parts.ok()) return WithKind(parts.status(), ErrorKind::kBadCheckpoint);
  return std::make_unique<ModelRows>(files, named, *parts);
}

absl::StatusOr<std::unique_ptr<CommittedModel>> ReadCommittedModel(const SavedRows& rows,
                                                                   ThreadPool& pool) {
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map, ShardMap::Create(rows.shard_num(), 1));
  auto model = std::make_unique<StoredModel>(rows, map);
  CISTERN_RETURN_IF_ERROR(AddContext(model->Read(rows, pool), rows.name()));
  return model;
}

}  // namespace cistern::app
