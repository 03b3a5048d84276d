#include "cli/session/commit_changes.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "cli/terminal/exit_code.h"
#include "server/checkpoint/commit_reader.h"

namespace cistern {
namespace {

class ChangedRows : public CommittedModel {
 public:
  ChangedRows(const StateFolder& state, const ParsedManifest& commit)
      : name_(absl::StrCat(state.path(), ", commit ", commit.manifest.commit())),
        version_{commit.manifest.commit(), commit.self_xxh3, commit.manifest.pass()},
        schema_(commit.manifest.schema()),
        shard_num_(commit.manifest.shard_num()) {}

  absl::Status Open(const StateFolder& state, const v1::Manifest& manifest, uint64_t since) {
    CISTERN_ASSIGN_OR_RETURN(reader_, CommitReader::Open(state, manifest));
    std::vector<v1::RowFile> files;
    for (const v1::RowFile& file : manifest.files()) {
      if (file.commit() > since) files.push_back(file);
    }
    OrderByCommit(&files);
    std::reverse(files.begin(), files.end());
    for (const v1::RowFile& file : files) {
      CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<RowFileReader> rows,
                               RowFileReader::Open(state.files(), state.data_path(), file));
      newest_first_.push_back(std::move(rows));
    }
    return absl::OkStatus();
  }

  const std::string& name() const override { return name_; }
  CommittedVersion version() const override { return version_; }
  const v1::Schema& schema() const override { return schema_; }
  uint32_t shard_num() const override { return shard_num_; }

  absl::Status Scan(TableId table, const Visit& visit) override {
    CISTERN_ASSIGN_OR_RETURN(const ValueLayout layout,
                             ValueLayout::Create(schema_.tables(static_cast<int>(table))));
    absl::flat_hash_set<Key> seen;
    for (const std::unique_ptr<RowFileReader>& file : newest_first_) {
      for (const RowSection& section : file->sections()) {
        if (section.dense || section.table != table) continue;
        RowFileReader::Cursor row = file->Walk(section, layout);
        for (;;) {
          CISTERN_ASSIGN_OR_RETURN(const bool more, row.Next());
          if (!more) break;
          if (!seen.insert(row.key()).second) continue;
          CISTERN_RETURN_IF_ERROR(visit(section.shard, row.key(), row.value(), row.has_embedx()));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Pull(TableId, absl::Span<const Key>, float*, uint8_t*) override {
    return absl::UnimplementedError("the changes of a commit are read by Scan only");
  }

  absl::StatusOr<std::vector<float>> PullDense(TableId id) override {
    const v1::DenseTableSpec& spec = schema_.dense_tables(static_cast<int>(id));
    DenseTable table(spec, /*rank=*/0, /*server_num=*/1);
    CISTERN_RETURN_IF_ERROR(reader_->ReadDense(id, table));
    std::vector<float> values(spec.rows() * table.columns());
    CISTERN_RETURN_IF_ERROR(AddContext(table.Read(0, spec.rows(), values.data()),
                                       absl::StrCat(name_, ", table '", spec.name(), "'")));
    return values;
  }

  absl::Status Recheck() override { return absl::OkStatus(); }  // files of commits never change

 private:
  const std::string name_;
  const CommittedVersion version_;
  const v1::Schema schema_;
  const uint32_t shard_num_;
  std::unique_ptr<CommitReader> reader_;
  std::vector<std::unique_ptr<RowFileReader>> newest_first_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CommittedModel>> ReadCommitChanges(const StateFolder& state,
                                                                  const ParsedManifest& commit,
                                                                  uint64_t since) {
  const v1::Manifest& manifest = commit.manifest;
  const bool defers_updates = manifest.has_clock();
  const bool merged =
      std::any_of(manifest.files().begin(), manifest.files().end(),
                  [&](const v1::RowFile& file) { return file.base() && file.commit() > since; });
  if (defers_updates || merged || since >= manifest.commit()) return nullptr;
  auto changes = std::make_unique<ChangedRows>(state, commit);
  const absl::Status opened = changes->Open(state, manifest, since);
  if (!opened.ok()) return FromCheckpoint(opened);
  return changes;
}

}  // namespace cistern
