#include "server/checkpoint/verify_state.h"

#include <utility>

#include "server/checkpoint/commit_reader.h"

namespace cistern::server {
namespace {

absl::Status CheckState(const std::string& where, const v1::TableState& recorded,
                        const ShardTotals& found) {
  if (ShardTotals{recorded.rows(), recorded.digest()} == found) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(where, ", table '", recorded.name(), "': its files hold ",
                                          found.rows, " rows with digest ", absl::Hex(found.digest),
                                          ", but the manifest has ", recorded.rows(), " with ",
                                          absl::Hex(recorded.digest())));
}

// Reads a table shard by shard; returns the first error among its shards.
absl::StatusOr<ShardTotals> ReadTable(const CommitReader& reader, TableId table, ThreadPool& pool) {
  const size_t shards = reader.manifest().shard_num();
  std::vector<ShardTotals> totals(shards);
  std::vector<absl::Status> read(shards);
  pool.ParallelFor(shards, [&](size_t shard) {
    read[shard] = reader.ReadShard(table, static_cast<ShardIndex>(shard), &totals[shard],
                                   [](Key, const float*, bool) { return absl::OkStatus(); });
  });
  ShardTotals sum;
  for (size_t shard = 0; shard < shards; ++shard) {
    CISTERN_RETURN_IF_ERROR(read[shard]);
    sum.rows += totals[shard].rows;
    sum.digest += totals[shard].digest;
  }
  return sum;
}

absl::StatusOr<ShardTotals> ReadDenseTable(const CommitReader& reader, TableId id) {
  DenseTable table(reader.manifest().schema().dense_tables(static_cast<int>(id)), 0, 1);
  CISTERN_RETURN_IF_ERROR(reader.ReadDense(id, table));
  return ShardTotals{table.written() ? table.spec().rows() : 0, table.Digest()};
}

}  // namespace

CommitCheck StateVerifier::Check(uint64_t commit) {
  CommitCheck check;
  check.commit = commit;
  const absl::StatusOr<ParsedManifest> parsed = folder_.ReadManifest(commit);
  if (!parsed.ok()) {
    check.faults.push_back(parsed.status());
    return check;
  }
  check.manifest = parsed->manifest;
  const auto note = [&check](const absl::Status& status) {
    if (!status.ok()) check.faults.push_back(status);
  };
  note(CheckPrevious(check.manifest));
  expect_(static_cast<uint64_t>(check.manifest.files_size() + check.manifest.tables_size()));
  const size_t before = check.faults.size();
  if (check.manifest.server_num() > 1) check.part = folder_.owner();
  for (const v1::RowFile& file : check.manifest.files()) {
    if (folder_.IsElsewhere(check.manifest, file)) {
      done_();
      continue;
    }
    const std::pair<std::string, uint64_t> name(file.name(), file.root());
    if (good_files_.count(name) == 0) {
      const absl::Status status = CheckFile(file);
      note(status);
      if (status.ok()) good_files_.insert(name);
    }
    done_();
  }
  // Merging the rows of damaged files would only repeat the faults found above.
  const bool all = check.faults.size() == before && !check.part.has_value();
  if (all) CheckTables(check.manifest, &check.faults);
  return check;
}

absl::Status StateVerifier::CheckPrevious(const v1::Manifest& manifest) const {
  const absl::StatusOr<ParsedManifest> previous = folder_.ReadManifest(manifest.commit() - 1);
  // Old manifests are removed, and an unreadable one is a fault of its own commit.
  if (!previous.ok() || previous->self_xxh3 == manifest.previous()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      folder_.path(), ": commit ", manifest.commit(), " does not descend from the commit ",
      manifest.commit() - 1, " in this folder: one of the two is from another run"));
}

absl::Status StateVerifier::CheckFile(const v1::RowFile& file) const {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<RowFileReader> reader,
                           RowFileReader::Open(folder_.files(), folder_.data_path(), file));
  return reader->Verify();
}

void StateVerifier::CheckTables(const v1::Manifest& manifest,
                                std::vector<absl::Status>* faults) const {
  const absl::StatusOr<std::unique_ptr<CommitReader>> reader =
      CommitReader::Open(folder_, manifest);
  if (!reader.ok()) {
    faults->push_back(reader.status());
    return;
  }
  const std::string where = absl::StrCat(folder_.path(), ": commit ", manifest.commit());
  const auto compare = [&](const v1::TableState& state, const absl::StatusOr<ShardTotals>& found) {
    const absl::Status status = found.ok() ? CheckState(where, state, *found) : found.status();
    if (!status.ok()) faults->push_back(status);
  };
  for (int t = 0; t < manifest.tables_size(); ++t) {
    compare(manifest.tables(t), ReadTable(**reader, static_cast<TableId>(t), pool_));
    done_();
  }
  for (int t = 0; t < manifest.dense_tables_size(); ++t) {
    compare(manifest.dense_tables(t), ReadDenseTable(**reader, static_cast<TableId>(t)));
  }
}

}  // namespace cistern::server
