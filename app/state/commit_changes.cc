#include "app/state/commit_changes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "server/checkpoint/commit_reader.h"

namespace cistern::app {
namespace {

class ChangedRows : public CommittedModel {
 public:
  ChangedRows(const server::StateFolder& state, const server::ParsedManifest& commit)
      : name_(absl::StrCat(state.path(), ", commit ", commit.manifest.commit())),
        version_{commit.manifest.commit(), commit.self_xxh3, commit.manifest.pass()},
        schema_(commit.manifest.schema()),
        shard_num_(commit.manifest.shard_num()) {}

  // files: those that hold the changed rows.
  absl::Status Open(const server::StateFolder& state, const v1::Manifest& manifest,
                    std::vector<v1::RowFile> files) {
    CISTERN_ASSIGN_OR_RETURN(reader_, server::CommitReader::Open(state, manifest));
    server::OrderByCommit(&files);
    std::reverse(files.begin(), files.end());
    for (const v1::RowFile& file : files) {
      CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<server::RowFileReader> rows,
                               server::RowFileReader::Open(state.files(), state.data_path(), file));
      newest_first_.push_back(std::move(rows));
    }
    return absl::OkStatus();
  }

  const std::string& name() const override { return name_; }
  CommittedVersion version() const override { return version_; }
  const v1::Schema& schema() const override { return schema_; }
  uint32_t shard_num() const override { return shard_num_; }

  absl::Status Scan(TableId table, const Visit& visit) override {
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout stored,
                             ValueLayout::CreateStored(schema_.tables(static_cast<int>(table))));
    ValueUnpacker unpack(stored);
    return Walk(table, [&](ShardIndex shard, const server::RowFileReader::Cursor& row) {
      return row.is_removed() ? absl::OkStatus()
                              : visit(shard, row.key(), unpack(row.value()), row.has_embedx());
    });
  }

  absl::Status ScanRemoved(TableId table, const std::function<absl::Status(Key)>& visit) override {
    if (!schema_.tables(static_cast<int>(table)).has_bounds()) return absl::OkStatus();
    return Walk(table, [&](ShardIndex, const server::RowFileReader::Cursor& row) {
      return row.is_removed() ? visit(row.key()) : absl::OkStatus();
    });
  }

  absl::Status Pull(TableId, absl::Span<const Key>, float*, uint8_t*) override {
    return absl::UnimplementedError("the changes of a commit are read by Scan only");
  }

  absl::StatusOr<std::vector<float>> PullDense(TableId id) override {
    const v1::DenseTableSpec& spec = schema_.dense_tables(static_cast<int>(id));
    server::DenseTable table(spec, /*rank=*/0, /*server_num=*/1);
    CISTERN_RETURN_IF_ERROR(reader_->ReadDense(id, table));
    std::vector<float> values(spec.rows() * table.columns());
    CISTERN_RETURN_IF_ERROR(AddContext(table.Read(0, spec.rows(), values.data()),
                                       absl::StrCat(name_, ", table '", spec.name(), "'")));
    return values;
  }

  absl::Status Recheck() override { return absl::OkStatus(); }  // files of commits never change

 private:
  // Visits each key of the files once, with its newest record.
  absl::Status Walk(
      TableId table,
      const std::function<absl::Status(ShardIndex, const server::RowFileReader::Cursor&)>& visit) {
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout,
                             ValueLayout::CreateStored(schema_.tables(static_cast<int>(table))));
    absl::flat_hash_set<Key> seen;
    for (const std::unique_ptr<server::RowFileReader>& file : newest_first_) {
      for (const server::RowSection& section : file->sections()) {
        if (section.dense || section.table != table) continue;
        server::RowFileReader::Cursor row = file->Walk(section, layout);
        for (;;) {
          CISTERN_ASSIGN_OR_RETURN(const bool more, row.Next());
          if (!more) break;
          if (!seen.insert(row.key()).second) continue;
          CISTERN_RETURN_IF_ERROR(visit(section.shard, row));
        }
      }
    }
    return absl::OkStatus();
  }

  const std::string name_;
  const CommittedVersion version_;
  const v1::Schema schema_;
  const uint32_t shard_num_;
  std::unique_ptr<server::CommitReader> reader_;
  std::vector<std::unique_ptr<server::RowFileReader>> newest_first_;
};

// The newest base in `manifest` that was made after commit `since`; 0 if there is none.
uint64_t NewestBase(const v1::Manifest& manifest, uint64_t since) {
  uint64_t newest = 0;
  for (const v1::RowFile& file : manifest.files()) {
    if (file.base() && file.commit() > since) newest = std::max(newest, file.commit());
  }
  return newest;
}

// The files that hold the rows changed after commit `since`; nullopt if the manifests that exist do
// not name all of them.
//
// A manifest names, for each server, a base and every file of later commits. It therefore names all
// changes after commit m unless it has a base that is newer. The changes up to m are those of
// manifest m.
absl::StatusOr<std::optional<std::vector<v1::RowFile>>> FilesSince(const server::StateFolder& state,
                                                                   const v1::Manifest& newest,
                                                                   uint64_t since) {
  std::vector<v1::RowFile> files;
  v1::Manifest manifest = newest;
  for (;;) {
    const uint64_t base = NewestBase(manifest, since);
    // A base that its own commit has written, such as that of a load, replaces every row.
    if (base == manifest.commit()) return std::nullopt;
    uint64_t before = since;
    absl::StatusOr<server::ParsedManifest> older;
    if (base != 0) {
      before = manifest.commit() - 1;
      older = state.ReadManifest(before);
      if (absl::IsNotFound(older.status())) return std::nullopt;
      CISTERN_RETURN_IF_ERROR(older.status());
    }
    for (const v1::RowFile& file : manifest.files()) {
      if (file.commit() > before) files.push_back(file);
    }
    if (base == 0) return files;
    manifest = std::move(older->manifest);
  }
}

// Whether all files exist: a training removes those that no kept manifest names.
absl::StatusOr<bool> AllExist(const server::StateFolder& state,
                              const std::vector<v1::RowFile>& files) {
  for (const v1::RowFile& file : files) {
    CISTERN_ASSIGN_OR_RETURN(
        const bool exists, state.files().Exists(absl::StrCat(state.data_path(), "/", file.name())));
    if (!exists) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CommittedModel>> ReadCommitChanges(
    const server::StateFolder& state, const server::ParsedManifest& commit, uint64_t since) {
  const v1::Manifest& manifest = commit.manifest;
  const bool defers_updates = manifest.has_clock();
  if (defers_updates || since >= manifest.commit()) return nullptr;
  absl::StatusOr<std::optional<std::vector<v1::RowFile>>> files =
      FilesSince(state, manifest, since);
  if (!files.ok()) return WithKind(files.status(), ErrorKind::kBadCheckpoint);
  if (!*files) return nullptr;
  auto changes = std::make_unique<ChangedRows>(state, commit);
  const absl::Status opened = changes->Open(state, manifest, **files);
  if (opened.ok()) return changes;
  (*files)->insert((*files)->end(), manifest.files().begin(), manifest.files().end());
  CISTERN_ASSIGN_OR_RETURN(const bool all_exist, AllExist(state, **files));
  if (!all_exist) return nullptr;
  return WithKind(opened, ErrorKind::kBadCheckpoint);
}

}  // namespace cistern::app
