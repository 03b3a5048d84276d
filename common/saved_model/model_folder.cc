// The parts of a saved model: written once, read as a whole or not at all.
#include "common/saved_model/model_folder.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "common/base/checked.h"
#include "common/base/json_memory.h"
#include "common/saved_model/model_part_json.h"
#include "common/value/dense_range.h"
#include "common/value/pass_days.h"
#include "common/value/schema.h"
#include "common/value/shard_map.h"

namespace cistern {
namespace {

// A JSON file has one line per shard and table: 65536 shards of ten tables stay below this.
constexpr uint64_t kMaxJsonBytes = uint64_t{256} << 20;

struct PartName {
  uint32_t server = 0, server_num = 0;
};

// Parses "part-000-of-002.json"; false for any other name.
bool ParsePartJsonName(absl::string_view name, PartName* out) {
  const std::string whole(name);
  if (!absl::ConsumePrefix(&name, "part-") || !absl::ConsumeSuffix(&name, ".json")) return false;
  const size_t of = name.find("-of-");
  if (of == absl::string_view::npos || !absl::SimpleAtoi(name.substr(0, of), &out->server) ||
      !absl::SimpleAtoi(name.substr(of + 4), &out->server_num)) {
    return false;
  }
  return PartJsonName(out->server, out->server_num) == whole;
}

// The JSON files in a folder, sorted by server. kNotFound if there is no such folder.
absl::StatusOr<std::vector<PartName>> ListParts(FileSystem& files, const std::string& folder) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  std::vector<PartName> parts;
  for (const std::string& name : names) {
    PartName part;
    if (ParsePartJsonName(name, &part)) parts.push_back(part);
  }
  std::sort(parts.begin(), parts.end(),
            [](const PartName& a, const PartName& b) { return a.server < b.server; });
  return parts;
}

// The files that a part must list (sparse) and those that it may list (dense): by name, with the
// row count that a dense file must have.
struct ExpectedFiles {
  std::set<std::string> sparse;
  std::map<std::string, uint64_t> dense;
};

ExpectedFiles FilesOf(const ModelPart& part, const ShardMap& map) {
  ExpectedFiles files;
  for (const v1::TableSpec& table : part.schema.tables()) {
    for (uint32_t local = 0; local < map.local_shard_num(part.server); ++local) {
      const ShardIndex shard = map.global_shard(part.server, local);
      files.sparse.insert(SparsePartName(table.name(), part.server, shard, part.format));
    }
  }
  for (const v1::DenseTableSpec& table : part.schema.dense_tables()) {
    const DenseRange range = DenseRangeOf(table.rows(), part.server, part.server_num);
    files.dense[DensePartName(table.name(), part.server, part.format)] = range.end - range.begin;
  }
  return files;
}

// OK if the files of `part` match its schema: one file for each shard that its server owns of each
// sparse table, and at most one file per dense table, with all rows that its server owns.
absl::Status CheckPart(const ModelPart& part) {
  CISTERN_RETURN_IF_ERROR(CheckSchema(part.schema));
  CISTERN_RETURN_IF_ERROR(CheckPassDays(part.days, part.pass, part.schema));
  CISTERN_ASSIGN_OR_RETURN(const ShardMap map, ShardMap::Create(part.shard_num, part.server_num));
  if (part.server >= part.server_num) {
    return absl::InvalidArgumentError(
        absl::StrCat("server ", part.server, " of ", part.server_num, " does not exist"));
  }
  // Checked before any name is built: a few bytes of JSON can claim many tables and shards.
  const auto sparse_num = CheckedMul(static_cast<uint64_t>(part.schema.tables_size()),
                                     map.local_shard_num(part.server));
  if (!sparse_num.has_value() || *sparse_num > part.files.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it lists ", part.files.size(), " files; ", part.schema.tables_size(), " tables have ",
        map.local_shard_num(part.server), " shards each on this server"));
  }
  ExpectedFiles expected = FilesOf(part, map);
  std::set<std::string> listed;
  for (const ModelFile& file : part.files) {
    if (!listed.insert(file.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("'", file.name, "' is listed twice"));
    }
    if (expected.sparse.erase(file.name) == 1) continue;
    const auto dense = expected.dense.find(file.name);
    if (dense == expected.dense.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", file.name, "' is not a file of this part's tables"));
    }
    if (file.rows != dense->second) {
      return absl::InvalidArgumentError(absl::StrCat("'", file.name, "' has ", file.rows,
                                                     " rows; its server owns ", dense->second));
    }
  }
  if (expected.sparse.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", *expected.sparse.begin(), "' is not listed"));
}

// OK if each dense table is saved by every server that owns rows of it or, if it was never written,
// by none.
absl::Status CheckDenseTables(const std::vector<ModelPart>& parts) {
  std::set<std::string> listed;
  for (const ModelPart& part : parts) {
    for (const ModelFile& file : part.files) listed.insert(file.name);
  }
  for (const v1::DenseTableSpec& table : parts[0].schema.dense_tables()) {
    std::vector<std::string> present, absent;
    for (uint32_t server = 0; server < parts[0].server_num; ++server) {
      const DenseRange range = DenseRangeOf(table.rows(), server, parts[0].server_num);
      if (range.begin == range.end) continue;
      const std::string name = DensePartName(table.name(), server, parts[0].format);
      (listed.count(name) == 1 ? present : absent).push_back(name);
    }
    if (!present.empty() && !absent.empty()) {
      return absl::DataLossError(absl::StrCat("dense table '", table.name(), "' is incomplete: '",
                                              absent[0], "' is not listed, but '", present[0],
                                              "' is"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelPart> ReadPart(FileSystem& files, const std::string& name,
                                   const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> opened = files.Open(path);
  if (absl::IsInvalidArgument(opened.status()))
    return WithCode(opened.status(), absl::StatusCode::kDataLoss);
  CISTERN_RETURN_IF_ERROR(opened.status());
  const ReadableFile& file = **opened;
  if (file.bytes() > kMaxJsonBytes) {
    return absl::DataLossError(
        absl::StrCat("it has ", file.bytes(), " bytes; the limit is ", kMaxJsonBytes));
  }
  std::string text(file.bytes(), '\0');
  CISTERN_RETURN_IF_ERROR(file.Read(0, text.size(), text.data()));
  ExpectMemoryForJson(text.size());
  CISTERN_ASSIGN_OR_RETURN(ModelPart part, ParsePart(text));
  const absl::Status status = CheckPart(part);
  if (!status.ok()) return WithCode(status, absl::StatusCode::kDataLoss);
  if (PartJsonName(part.server, part.server_num) != name) {
    return absl::DataLossError(
        absl::StrCat("it holds server ", part.server, " of ", part.server_num));
  }
  return part;
}

// Why two parts cannot belong to the same save; empty if they can.
std::string Disagreement(const ModelPart& a, const ModelPart& b) {
  if (a.shard_num != b.shard_num) {
    return absl::StrCat("shard_num is ", a.shard_num, " versus ", b.shard_num);
  }
  if (a.pass != b.pass) return absl::StrCat("the pass is ", a.pass, " versus ", b.pass);
  // A server of an older program does not tell its commit.
  if (a.commit != 0 && b.commit != 0 &&
      (a.commit != b.commit || a.manifest_xxh3 != b.manifest_xxh3)) {
    return absl::StrCat("the commit is ", a.commit, " versus ", b.commit,
                        a.commit == b.commit ? " of another training" : "");
  }
  if (a.mode != b.mode || a.format.SerializeAsString() != b.format.SerializeAsString()) {
    return "they were saved in different modes or formats";
  }
  if (a.days.SerializeAsString() != b.days.SerializeAsString()) {
    return "the days of their passes differ";
  }
  const std::string difference = SchemaDifference(a.schema, b.schema);
  return difference.empty() ? "" : absl::StrCat("their schemas differ: ", difference);
}

// OK if the names are those of servers 0 .. n-1 of n.
absl::Status CheckNames(const std::vector<PartName>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].server_num != names[0].server_num) {
      return absl::DataLossError(absl::StrCat("the folder holds parts of two saves: ",
                                              PartJsonName(names[0].server, names[0].server_num),
                                              " and ",
                                              PartJsonName(names[i].server, names[i].server_num)));
    }
  }
  for (uint32_t server = 0; server < names[0].server_num; ++server) {
    if (server < names.size() && names[server].server == server) continue;
    return absl::DataLossError(absl::StrCat(
        "the model is incomplete: ", PartJsonName(server, names[0].server_num),
        " is missing; that server's save did not finish or its files were not copied"));
  }
  return absl::OkStatus();
}

// The folders of the tables whose files `part` lists.
std::set<std::string> TableFolders(const ModelPart& part) {
  std::set<std::string> folders;
  for (const ModelFile& file : part.files) folders.insert(file.name.substr(0, file.name.find('/')));
  return folders;
}

// Writes `text` to a new file that is durable before it gets its name. kAlreadyExists if the name
// is taken.
absl::Status WriteExclusively(FileSystem& files, const std::string& folder, const std::string& name,
                              absl::string_view text) {
  const std::string path = absl::StrCat(folder, "/", name), unfinished = path + ".tmp";
  files.Remove(unfinished).IgnoreError();
  const absl::Status status = [&]() -> absl::Status {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(unfinished));
    CISTERN_RETURN_IF_ERROR(file->Append(text));
    CISTERN_RETURN_IF_ERROR(file->Sync());
    CISTERN_RETURN_IF_ERROR(file->Close());
    return files.Publish(unfinished, path);
  }();
  if (!status.ok()) files.Remove(unfinished).IgnoreError();
  if (absl::IsAlreadyExists(status)) {
    return absl::AlreadyExistsError(absl::StrCat(path, " already exists"));
  }
  const absl::Status named = status.ok() ? files.SyncFolder(folder) : status;
  // The caller removes the files of a failed save, so the JSON file must not stay. It exists if the
  // folder could not be synced or the reply to the rename was lost.
  if (!named.ok() && ReadWhole(files, path, text.size()).value_or("") == text) {
    files.Remove(path).IgnoreError();
  }
  return named;
}

}  // namespace

std::string SparsePartName(const std::string& table, uint32_t server, uint32_t shard,
                           const v1::SaveFormat& format) {
  return absl::StrCat(table, "/part-", absl::Dec(server, absl::kZeroPad3), "-",
                      absl::Dec(shard, absl::kZeroPad5), SuffixOf(format));
}

std::string DensePartName(const std::string& table, uint32_t server, const v1::SaveFormat& format) {
  return absl::StrCat(table, "/part-", absl::Dec(server, absl::kZeroPad3), SuffixOf(format));
}

std::string PartJsonName(uint32_t server, uint32_t server_num) {
  return absl::StrCat("part-", absl::Dec(server, absl::kZeroPad3), "-of-",
                      absl::Dec(server_num, absl::kZeroPad3), ".json");
}

absl::Status CheckPartIsNew(FileSystem& files, const std::string& folder, uint32_t server,
                            uint32_t server_num) {
  const absl::StatusOr<std::vector<PartName>> parts = ListParts(files, folder);
  if (absl::IsNotFound(parts.status())) return absl::OkStatus();
  CISTERN_RETURN_IF_ERROR(parts.status());
  for (const PartName& part : *parts) {
    if (part.server_num == server_num && part.server != server) continue;
    return absl::AlreadyExistsError(
        absl::StrCat(folder, " holds a saved model (", PartJsonName(part.server, part.server_num),
                     "), and saved models are never changed; save under another name or remove "
                     "this one"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ModelFile>> UnmakePart(FileSystem& files, const std::string& folder,
                                                  uint32_t server, uint32_t server_num,
                                                  uint64_t pass) {
  const std::string name = PartJsonName(server, server_num);
  const std::string path = absl::StrCat(folder, "/", name);
  absl::StatusOr<ModelPart> part = ReadPart(files, name, path);
  if (absl::IsNotFound(part.status())) return std::vector<ModelFile>();
  if (!part.ok()) return AddContext(part.status(), path);
  if (part->pass != pass) return std::vector<ModelFile>();
  CISTERN_RETURN_IF_ERROR(files.Remove(path));
  CISTERN_RETURN_IF_ERROR(files.SyncFolder(folder));
  return std::move(part->files);
}

absl::Status WritePart(FileSystem& files, const std::string& folder, const ModelPart& part) {
  const std::string name = PartJsonName(part.server, part.server_num);
  CISTERN_RETURN_IF_ERROR(AddContext(CheckPart(part), absl::StrCat(folder, "/", name)));
  CISTERN_RETURN_IF_ERROR(CheckPartIsNew(files, folder, part.server, part.server_num));
  CISTERN_RETURN_IF_ERROR(files.MakeFolders(folder));
  for (const std::string& table : TableFolders(part)) {
    CISTERN_RETURN_IF_ERROR(files.SyncFolder(absl::StrCat(folder, "/", table)));
  }
  constexpr size_t kBytesOfFile = 256;
  ExpectMemoryForJson(part.files.size() * kBytesOfFile + part.schema.ByteSizeLong() * 8);
  return WriteExclusively(files, folder, name, FormatPart(part));
}

absl::StatusOr<std::vector<ModelPart>> ReadParts(FileSystem& files, const std::string& folder) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<PartName> names, ListParts(files, folder));
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat(
        folder, " holds no saved model: part-*-of-*.json, which a save writes last, is missing"));
  }
  CISTERN_RETURN_IF_ERROR(AddContext(CheckNames(names), folder));
  std::vector<ModelPart> parts;
  for (const PartName& named : names) {
    const std::string name = PartJsonName(named.server, named.server_num);
    const std::string path = absl::StrCat(folder, "/", name);
    absl::StatusOr<ModelPart> part = ReadPart(files, name, path);
    if (!part.ok()) return AddContext(part.status(), path);
    const std::string disagreement = parts.empty() ? "" : Disagreement(parts[0], *part);
    if (!disagreement.empty()) {
      return absl::DataLossError(absl::StrCat(path, " is from another save than ",
                                              PartJsonName(parts[0].server, parts[0].server_num),
                                              ": ", disagreement));
    }
    parts.push_back(*std::move(part));
  }
  CISTERN_RETURN_IF_ERROR(AddContext(CheckDenseTables(parts), folder));
  return parts;
}

std::vector<ModelFile> FilesByShard(const std::string& table, const std::vector<ModelPart>& parts) {
  std::map<std::string, ModelFile> listed;
  for (const ModelPart& part : parts) {
    for (const ModelFile& file : part.files) listed.emplace(file.name, file);
  }
  std::vector<ModelFile> files;
  for (uint32_t shard = 0; shard < parts[0].shard_num; ++shard) {
    files.push_back(
        listed.at(SparsePartName(table, shard % parts[0].server_num, shard, parts[0].format)));
  }
  return files;
}

std::vector<std::optional<ModelFile>> FilesByServer(const std::string& table,
                                                    const std::vector<ModelPart>& parts) {
  std::vector<std::optional<ModelFile>> files;
  for (const ModelPart& part : parts) {
    const std::string name = DensePartName(table, part.server, part.format);
    std::optional<ModelFile>& found = files.emplace_back();
    for (const ModelFile& file : part.files) {
      if (file.name == name) found = file;
    }
  }
  return files;
}

std::optional<std::vector<v1::TableState>> TableStatesOf(const std::vector<ModelPart>& parts) {
  std::vector<v1::TableState> tables;
  std::map<std::string, size_t> places;
  const auto add = [&](const std::string& name) {
    places[name] = tables.size();
    tables.emplace_back().set_name(name);
  };
  for (const v1::TableSpec& table : parts[0].schema.tables()) add(table.name());
  for (const v1::DenseTableSpec& table : parts[0].schema.dense_tables()) add(table.name());
  for (const ModelPart& part : parts) {
    for (const ModelFile& file : part.files) {
      if (!file.digest.has_value()) return std::nullopt;
      v1::TableState& table = tables[places.at(file.name.substr(0, file.name.find('/')))];
      table.set_rows(table.rows() + file.rows);
      table.set_digest(table.digest() + *file.digest);
    }
  }
  return tables;
}

}  // namespace cistern
