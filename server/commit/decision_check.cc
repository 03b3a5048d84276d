#include "server/commit/decision_check.h"

#include <algorithm>
#include <set>

#include "common/base/hash.h"
#include "common/value/schema.h"
#include "server/checkpoint/compaction.h"
#include "server/checkpoint/shard_rows.h"

namespace cistern::server {
namespace {

absl::Status Wrong(const v1::Manifest& manifest, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("commit ", manifest.commit(), " cannot be decided: ", why));
}

std::vector<v1::RowFile> FilesOfServer(const v1::Manifest& manifest, const ShardMap& map,
                                       uint32_t rank) {
  std::vector<v1::RowFile> files;
  for (const v1::RowFile& file : manifest.files()) {
    if (HoldsRowsOf(file, map, rank)) files.push_back(file);
  }
  OrderByCommit(&files);
  return files;
}

std::set<std::string> Entries(const std::vector<v1::RowFile>& files) {
  std::set<std::string> entries;
  for (const v1::RowFile& file : files) entries.insert(file.SerializeAsString());
  return entries;
}

// Whether the name of a file matches its manifest entry.
bool IsNamedAsIs(const v1::RowFile& file) {
  const std::optional<RowFileName> name = ParseRowFileName(file.name());
  return name.has_value() && name->base == file.base() && name->commit == file.commit() &&
         name->term == file.epoch() && name->server == file.server();
}

template <typename States>
bool AreSame(const States& a, const States& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const v1::TableState& x, const v1::TableState& y) {
                      return x.SerializeAsString() == y.SerializeAsString();
                    });
}

}  // namespace

std::vector<v1::TableState> TotalsOfFooters(const std::vector<const FileFooter*>& files,
                                            const v1::Schema& schema, uint32_t shard_num) {
  const auto tables = static_cast<size_t>(schema.tables_size());
  std::vector<std::vector<ShardTotals>> shards(tables, std::vector<ShardTotals>(shard_num));
  for (const FileFooter* file : files) {
    // A base has every row of its shards and replaces everything older.
    for (size_t t = 0; file->header.base && t < tables; ++t) {
      for (uint32_t s = file->header.server; s < shard_num; s += file->header.server_num) {
        shards[t][s] = {};
      }
    }
    for (const RowSection& section : file->sections) {
      if (section.dense || section.table >= tables || section.shard >= shard_num) continue;
      shards[section.table][section.shard] = {section.total_rows, section.digest};
    }
  }
  std::vector<v1::TableState> totals(tables);
  for (size_t t = 0; t < tables; ++t) {
    totals[t].set_name(schema.tables(static_cast<int>(t)).name());
    for (const ShardTotals& shard : shards[t]) {
      totals[t].set_rows(totals[t].rows() + shard.rows);
      totals[t].set_digest(totals[t].digest() + shard.digest);
    }
  }
  return totals;
}

absl::Status CheckTotalsOfFooters(const std::vector<const FileFooter*>& files,
                                  const v1::Manifest& manifest) {
  const std::vector<v1::TableState> totals =
      TotalsOfFooters(files, manifest.schema(), manifest.shard_num());
  for (size_t t = 0; t < totals.size(); ++t) {
    const v1::TableState& recorded = manifest.tables(static_cast<int>(t));
    if (totals[t].rows() == recorded.rows() && totals[t].digest() == recorded.digest()) continue;
    return absl::DataLossError(absl::StrCat(
        "table '", recorded.name(), "' of commit ", manifest.commit(), ": its files record ",
        totals[t].rows(), " rows with digest ", absl::Hex(totals[t].digest()),
        ", but the manifest has ", recorded.rows(), " with ", absl::Hex(recorded.digest())));
  }
  return absl::OkStatus();
}

absl::Status DecisionCheck::Check(const v1::Manifest& manifest, const Expected& expected) {
  if (const absl::Status whole = CheckManifest(manifest); !whole.ok()) {
    return Wrong(manifest, whole.message());
  }
  if (manifest.pass() != expected.pass) {
    return Wrong(manifest, absl::StrCat("it is for pass ", manifest.pass(), ", but pass ",
                                        expected.pass, " is prepared"));
  }
  if (SchemaHash(manifest.schema()) != expected.schema_hash) {
    return Wrong(manifest, "its tables differ from those of the servers");
  }
  if (manifest.days().SerializeAsString() != expected.days.SerializeAsString()) {
    return Wrong(manifest, "its days of passes are not those with which it was prepared");
  }
  CISTERN_RETURN_IF_ERROR(CheckNewFiles(manifest));
  CISTERN_RETURN_IF_ERROR(CheckOwnPart(manifest, expected));
  for (uint32_t rank = 0; rank < map_.server_num(); ++rank) {
    CISTERN_RETURN_IF_ERROR(CheckChain(manifest, expected.newest, rank));
  }
  std::vector<v1::RowFile> files(manifest.files().begin(), manifest.files().end());
  if (expected.own_files_only) files = FilesOfServer(manifest, map_, 0);
  OrderByCommit(&files);
  CISTERN_RETURN_IF_ERROR(ReadFooters(manifest, files));
  if (expected.own_files_only && map_.server_num() > 1) return absl::OkStatus();
  std::vector<const FileFooter*> footers;
  for (const v1::RowFile& file : files) footers.push_back(&footers_.at(file.SerializeAsString()));
  const absl::Status totals = CheckTotalsOfFooters(footers, manifest);
  return totals.ok() ? totals : Wrong(manifest, totals.message());
}

// Checks that each server contributes exactly one file of this commit.
absl::Status DecisionCheck::CheckNewFiles(const v1::Manifest& manifest) const {
  std::set<uint32_t> servers;
  for (const v1::RowFile& file : manifest.files()) {
    if (!IsNamedAsIs(file)) {
      return Wrong(manifest,
                   absl::StrCat("file '", file.name(), "' has a name that contradicts its entry"));
    }
    if (file.commit() != manifest.commit()) continue;
    if (file.server_num() != map_.server_num() || file.epoch() != manifest.epoch() ||
        !servers.insert(file.server()).second) {
      return Wrong(manifest, absl::StrCat("file '", file.name(), "' was not prepared by a server ",
                                          "of this commit"));
    }
  }
  if (servers.size() == map_.server_num()) return absl::OkStatus();
  return Wrong(manifest, absl::StrCat("it names new files of ", servers.size(), " of ",
                                      map_.server_num(), " servers"));
}

absl::Status DecisionCheck::CheckOwnPart(const v1::Manifest& manifest,
                                         const Expected& expected) const {
  std::set<std::string> prepared;
  for (const v1::RowFile& file : expected.prepared.files()) {
    prepared.insert(file.SerializeAsString());
  }
  size_t found = 0;
  for (const v1::RowFile& file : FilesOfServer(manifest, map_, 0)) {
    const bool is_prepared = prepared.count(file.SerializeAsString()) != 0;
    found += is_prepared ? 1 : 0;
    // Files written by another number of servers may be named for the sake of the other servers.
    if (is_prepared || file.server_num() != map_.server_num()) continue;
    return Wrong(manifest, absl::StrCat("server 0 has not prepared file '", file.name(), "'"));
  }
  if (found != prepared.size()) {
    return Wrong(manifest, "it leaves out a file that server 0 has prepared");
  }
  // With one server, the totals of the manifest are this server's own part.
  const bool same = AreSame(manifest.tables(), expected.prepared.tables()) &&
                    AreSame(manifest.dense_tables(), expected.prepared.dense_tables());
  if (map_.server_num() > 1 || same) return absl::OkStatus();
  return Wrong(manifest, "its tables differ from those that server 0 has prepared");
}

absl::Status DecisionCheck::CheckChain(const v1::Manifest& manifest, const ParsedManifest* newest,
                                       uint32_t rank) const {
  std::vector<v1::RowFile> before;
  if (newest != nullptr) before = FilesOfServer(newest->manifest, map_, rank);
  const std::set<std::string> old_entries = Entries(before);
  uint64_t base = 0;  // of the newest base; older files may be left out
  std::set<std::string> named;
  for (const v1::RowFile& file : FilesOfServer(manifest, map_, rank)) {
    named.insert(file.SerializeAsString());
    if (file.base() && file.server_num() == map_.server_num()) base = file.commit();
    const bool is_new = file.commit() == manifest.commit();
    const bool is_merged = file.base() && file.server_num() == map_.server_num() &&
                           file.commit() < manifest.commit() && newest != nullptr;
    if (is_new || is_merged || old_entries.count(file.SerializeAsString()) != 0) continue;
    return Wrong(manifest, absl::StrCat("file '", file.name(), "' of server ", rank,
                                        " is not in the previous commit"));
  }
  for (const v1::RowFile& file : before) {
    const bool is_replaced = file.commit() <= base;
    if (is_replaced || named.count(file.SerializeAsString()) != 0) continue;
    return Wrong(manifest, absl::StrCat("it leaves out file '", file.name(), "' of server ", rank));
  }
  if (base > 0 || !before.empty()) return absl::OkStatus();
  return Wrong(manifest, absl::StrCat("the rows of server ", rank, " do not start with a base"));
}

absl::Status DecisionCheck::ReadFooters(const v1::Manifest& manifest,
                                        const std::vector<v1::RowFile>& files) {
  std::map<std::string, FileFooter> footers;
  for (const v1::RowFile& file : files) {
    const std::string entry = file.SerializeAsString();
    if (const auto known = footers_.find(entry); known != footers_.end()) {
      footers.insert(footers_.extract(known));
      continue;
    }
    CISTERN_ASSIGN_OR_RETURN(const bool is_there, folder_->files().Exists(absl::StrCat(
                                                      folder_->data_path(), "/", file.name())));
    if (!is_there) {
      // A restarted server makes its merged base again, but a file that was just prepared must
      // exist.
      if (file.commit() != manifest.commit()) {
        return absl::AbortedError(
            absl::StrCat("commit ", manifest.commit(), " cannot be decided: its file ", file.name(),
                         " is gone; claim a new term and resume from the last commit"));
      }
      return WithOptions(
          absl::FailedPreconditionError(absl::StrCat(
              "commit ", manifest.commit(), " cannot be decided: server 0 cannot see the file ",
              file.name(), " of server ", file.server(), " in ", folder_->data_path(),
              "; all servers of a fleet must share one data_dir, or each keep a local state, or "
              "run "
              "without durability")),
          {"cistern-server.data_dir", "cistern-server.local_state", "cistern-server.durability"});
    }
    const absl::StatusOr<std::unique_ptr<RowFileReader>> reader =
        RowFileReader::Open(folder_->files(), folder_->data_path(), file);
    if (!reader.ok()) return Wrong(manifest, reader.status().message());
    const RowFileHeader& header = (*reader)->header();
    if (header.cluster_id != HashBytes(manifest.cluster()) ||
        header.schema_hash != SchemaHash(manifest.schema()) ||
        header.shard_num != manifest.shard_num()) {
      return Wrong(manifest, absl::StrCat("file '", file.name(),
                                          "' belongs to another cluster, model or shard_num"));
    }
    footers[entry] = {header, (*reader)->sections()};
  }
  footers_ = std::move(footers);
  return absl::OkStatus();
}

}  // namespace cistern::server
