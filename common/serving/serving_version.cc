#include "common/serving/serving_version.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/hash.h"
#include "common/base/hash_text.h"
#include "common/base/json_depth.h"
#include "common/base/names.h"
#include "common/base/stream_hash.h"
#include "common/io/new_file.h"

namespace cistern {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kFormat = 1;
constexpr uint64_t kMaxBytes = uint64_t{64} << 20;  // of serving.json
constexpr char kSelfHash[] = "  \"self_xxh3\"";

// Reads the members of one JSON object. Errors are kept; the first one is status().
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) Fail("is not an object");
  }

  uint64_t Number(const char* name) {
    const Json* const value = Find(name);
    if (value == nullptr || !value->is_number_unsigned()) return Fail(name, "a whole number"), 0;
    return value->get<uint64_t>();
  }
  uint64_t Hash(const char* name) {
    const std::string digits = Text(name);
    uint64_t hash = 0;
    // Each hash has one form, so that no flipped bit in it goes unnoticed.
    if (!absl::SimpleHexAtoi(digits, &hash) || HashText(hash) != digits) {
      Fail(name, "16 hex digits");
    }
    return hash;
  }
  std::string Text(const char* name) {
    const Json* const value = Find(name);
    if (value == nullptr || !value->is_string()) return Fail(name, "a text"), "";
    return value->get<std::string>();
  }
  // An empty list if the member is not a list.
  const Json& List(const char* name) {
    static const Json none = Json::array();
    const Json* const value = Find(name);
    if (value == nullptr || !value->is_array()) return Fail(name, "a list"), none;
    return *value;
  }
  ServingFile File(const char* name) {
    const Json* const value = Find(name);
    if (value == nullptr) return Fail(name, "an object"), ServingFile();
    return File(*value, absl::StrCat(where_, name));
  }
  ServingFile File(const Json& json, const std::string& where) {
    Reader reader(json, where + ".");
    ServingFile file = {reader.Text("path"), reader.Number("bytes"), reader.Hash("xxh3")};
    const std::vector<std::string> names = absl::StrSplit(file.path, '/');
    if (names.size() != 2 || !CheckName(names[0]).ok() || !CheckName(names[1]).ok()) {
      reader.Fail("path", "VERSION/FILE");
    }
    Take(reader);
    return file;
  }
  void Take(const Reader& part) { status_.Update(part.status_); }
  void Fail(const char* name, const char* type) {
    Fail(absl::StrCat("\"", where_, name, "\" is missing or is not ", type));
  }
  void Fail(const std::string& what) { status_.Update(absl::DataLossError(what)); }
  const absl::Status& status() const { return status_; }
  bool Has(const char* name) const { return Find(name) != nullptr; }
  std::optional<ServingFile> FileIfThere(const char* name) {
    return Find(name) == nullptr ? std::nullopt : std::optional(File(name));
  }

 private:
  const Json* Find(const char* name) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }

  const Json& json_;
  const std::string where_;
  absl::Status status_;
};

Json JsonOf(const ServingFile& file) {
  return {{"path", file.path}, {"bytes", file.bytes}, {"xxh3", HashText(file.xxh3)}};
}

ServingTable ReadTable(const Json& json, const std::string& where, Reader* all) {
  Reader reader(json, where + ".");
  ServingTable table;
  table.name = reader.Text("name");
  const uint64_t dim = reader.Number("dim");
  table.dim = static_cast<uint32_t>(std::min<uint64_t>(dim, UINT32_MAX));
  table.rows = reader.Number("rows");
  table.digest = reader.Hash("digest");
  if (reader.Has("base_digest")) table.base_digest = reader.Hash("base_digest");
  for (const Json& layer : reader.List("layers")) {
    table.layers.push_back(reader.File(layer, absl::StrCat(where, ".layers")));
  }
  if (table.layers.empty()) reader.Fail("layers", "a list of files");
  all->Take(reader);
  return table;
}

std::string VersionPath(const std::string& folder) {
  return absl::StrCat(folder, "/serving.json");
}

std::set<std::string> FoldersOf(const ServingVersion& version) {
  std::set<std::string> folders = {version.folder};
  const auto add = [&](const ServingFile& file) {
    folders.insert(file.path.substr(0, file.path.find('/')));
  };
  add(version.model);
  add(version.dense);
  if (version.recipe) add(*version.recipe);
  if (version.vocabulary) add(*version.vocabulary);
  for (const ServingTable& table : version.tables) {
    for (const ServingFile& layer : table.layers) add(layer);
  }
  return folders;
}

// Whether a folder of this name holds files of versions: "0000000042", "0000000042-002".
bool IsVersionName(const std::string& name) {
  constexpr size_t kDigits = 10;
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  const bool second = name[digits] == '-' && name.size() > digits + 1 &&
                      name.find_first_not_of("0123456789", digits + 1) == std::string::npos;
  return digits >= kDigits && (digits == name.size() || second);
}

std::string FormatHead(const ServingHead& head) {
  const Json json = {{"version", head.folder}, {"xxh3", HashText(head.xxh3)}};
  return json.dump() + "\n";
}

// kDataLoss: the file is missing, or its bytes differ from its description. read: reads all of
// them.
absl::Status CheckFile(FileSystem& files, const std::string& root, const ServingFile& file,
                       bool read) {
  constexpr size_t kChunk = size_t{1} << 20;
  const auto opened = files.Open(PathBelow(root, file.path));
  if (absl::IsNotFound(opened.status()))
    return WithCode(opened.status(), absl::StatusCode::kDataLoss);
  CISTERN_RETURN_IF_ERROR(opened.status());
  if ((*opened)->bytes() != file.bytes) {
    return absl::DataLossError(
        absl::StrCat(file.path, " has ", (*opened)->bytes(), " bytes, not ", file.bytes));
  }
  if (!read) return absl::OkStatus();
  StreamHash hash;
  std::string chunk;
  for (uint64_t at = 0; at < file.bytes; at += chunk.size()) {
    chunk.resize(std::min<uint64_t>(kChunk, file.bytes - at));
    CISTERN_RETURN_IF_ERROR((*opened)->Read(at, chunk.size(), chunk.data()));
    hash.Add(chunk);
  }
  if (hash.value() == file.xxh3) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file.path, ": checksum mismatch"));
}

}  // namespace

std::string FormatVersion(const ServingVersion& version) {
  Json json;
  json["format"] = kFormat;
  json["folder"] = version.folder;
  json["name"] = version.name;
  json["commit"] = version.commit;
  json["manifest_xxh3"] = HashText(version.manifest_xxh3);
  json["pass"] = version.pass;
  json["created"] = version.created;
  json["precision"] = NameOf(version.precision);
  json["model"] = JsonOf(version.model);
  json["overrides"] = version.overrides;
  json["dense"] = JsonOf(version.dense);
  json["dense_tables"] = Json::array();
  for (const ServingDense& table : version.dense_tables) {
    json["dense_tables"].push_back({{"name", table.name}, {"rows", table.rows}});
  }
  json["tables"] = Json::array();
  for (const ServingTable& table : version.tables) {
    Json layers = Json::array();
    for (const ServingFile& layer : table.layers) layers.push_back(JsonOf(layer));
    json["tables"].push_back({{"name", table.name},
                              {"dim", table.dim},
                              {"rows", table.rows},
                              {"digest", HashText(table.digest)},
                              {"layers", layers}});
    if (table.base_digest) json["tables"].back()["base_digest"] = HashText(*table.base_digest);
  }
  if (version.recipe) json["recipe"] = JsonOf(*version.recipe);
  if (version.vocabulary) json["vocabulary"] = JsonOf(*version.vocabulary);
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n";
  return absl::StrCat(text, kSelfHash, ": \"", HashText(HashBytes(text)), "\"\n}\n");
}

absl::StatusOr<ServingVersion> ParseVersion(const std::string& text) {
  const size_t end = text.rfind(kSelfHash);
  if (end == std::string::npos || JsonDepth(text) > kMaxJsonDepth) {
    return absl::DataLossError("not a description of a version, or truncated");
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::DataLossError("malformed JSON");
  Reader reader(json, "");
  const uint64_t format = reader.Number("format"), self = reader.Hash("self_xxh3");
  CISTERN_RETURN_IF_ERROR(reader.status());
  if (HashBytes(text.substr(0, end)) != self) return absl::DataLossError("checksum mismatch");
  if (format > kFormat) {
    return absl::DataLossError(absl::StrCat(
        "format ", format, " is newer than this program; use the version that wrote it"));
  }
  ServingVersion version;
  version.folder = reader.Text("folder");
  version.name = reader.Text("name");
  version.commit = reader.Number("commit");
  version.manifest_xxh3 = reader.Hash("manifest_xxh3");
  version.pass = reader.Number("pass");
  version.created = reader.Text("created");
  const std::optional<RowPrecision> precision = PrecisionOf(reader.Text("precision"));
  if (!precision) reader.Fail("precision", "float32, float16, bfloat16 or int8");
  version.precision = precision.value_or(RowPrecision::kFloat32);
  version.model = reader.File("model");
  for (const Json& one : reader.List("overrides")) {
    if (!one.is_string()) return absl::DataLossError("\"overrides\" is not a list of strings");
    version.overrides.push_back(one.get<std::string>());
  }
  version.dense = reader.File("dense");
  for (const Json& one : reader.List("dense_tables")) {
    Reader table(one, "dense_tables.");
    version.dense_tables.push_back({table.Text("name"), table.Number("rows")});
    reader.Take(table);
  }
  for (const Json& one : reader.List("tables")) {
    version.tables.push_back(ReadTable(one, "tables", &reader));
  }
  version.recipe = reader.FileIfThere("recipe");
  version.vocabulary = reader.FileIfThere("vocabulary");
  CISTERN_RETURN_IF_ERROR(reader.status());
  return version;
}

absl::StatusOr<ServingHead> ReadHead(FileSystem& files, const std::string& root) {
  const std::string path = absl::StrCat(root, "/HEAD");
  const absl::StatusOr<std::string> read = ReadWhole(files, path, 4096);
  if (absl::IsInvalidArgument(read.status())) {
    return WithFix(absl::InvalidArgumentError(
                       absl::StrCat(path, " is not the file that names the served version")),
                   "remove it, and name a version (cistern serving rollback)");
  }
  CISTERN_ASSIGN_OR_RETURN(const std::string text, read);
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Reader reader(json, "");
  const ServingHead head = {reader.Text("version"), reader.Hash("xxh3")};
  if (json.is_discarded() || !reader.status().ok() || !CheckName(head.folder).ok()) {
    return absl::DataLossError(absl::StrCat(path, " does not name a version"));
  }
  return head;
}

absl::StatusOr<ServingHead> HeadOf(FileSystem& files, const std::string& root,
                                   const std::string& folder) {
  CISTERN_ASSIGN_OR_RETURN(const std::string text,
                           ReadWhole(files, PathBelow(root, VersionPath(folder)), kMaxBytes));
  return ServingHead{folder, HashBytes(text)};
}

absl::Status CheckHeadBytes(FileSystem& files, const std::string& root) {
  CISTERN_ASSIGN_OR_RETURN(const ServingHead head, ReadHead(files, root));
  const std::string path = absl::StrCat(root, "/HEAD");
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files, path, 4096));
  if (text == FormatHead(head)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " was changed since it was written"));
}

absl::Status WriteHead(FileSystem& files, const std::string& root, const ServingHead& head) {
  return WriteWhole(files, absl::StrCat(root, "/HEAD"), FormatHead(head));
}

absl::StatusOr<ServingVersion> ReadVersion(FileSystem& files, const std::string& root,
                                           const std::string& folder, uint64_t xxh3) {
  const FilePath path = PathBelow(root, VersionPath(folder));
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files, path, kMaxBytes));
  if (xxh3 != 0 && HashBytes(text) != xxh3) {
    return absl::DataLossError(
        absl::StrCat(path.text(), " is not the file that HEAD names (checksum mismatch)"));
  }
  absl::StatusOr<ServingVersion> version = ParseVersion(text);
  if (!version.ok()) return AddContext(version.status(), path.text());
  if (version->folder == folder) return version;
  return absl::DataLossError(absl::StrCat(path.text(), " describes version ", version->folder));
}

absl::Status CheckSmallFiles(FileSystem& files, const std::string& root,
                             const ServingVersion& version) {
  std::vector<ServingFile> small = {version.model, version.dense};
  if (version.recipe) small.push_back(*version.recipe);
  if (version.vocabulary) small.push_back(*version.vocabulary);
  for (const ServingTable& table : version.tables) {
    CISTERN_RETURN_IF_ERROR(CheckFile(files, root, table.layers.front(), /*read=*/false));
    small.insert(small.end(), table.layers.begin() + 1, table.layers.end());
  }
  for (const ServingFile& file : small) {
    CISTERN_RETURN_IF_ERROR(CheckFile(files, root, file, /*read=*/true));
  }
  return absl::OkStatus();
}

absl::Status CheckAllFiles(FileSystem& files, const std::string& root,
                           const ServingVersion& version, std::set<std::string>* checked) {
  std::vector<ServingFile> all = {version.model, version.dense};
  if (version.recipe) all.push_back(*version.recipe);
  if (version.vocabulary) all.push_back(*version.vocabulary);
  for (const ServingTable& table : version.tables) {
    all.insert(all.end(), table.layers.begin(), table.layers.end());
  }
  for (const ServingFile& file : all) {
    // With bytes and hash: two versions may differ in what they say of a file.
    const std::string said = absl::StrCat(file.path, " ", file.bytes, " ", HashText(file.xxh3));
    if (checked->insert(said).second) {
      CISTERN_RETURN_IF_ERROR(CheckFile(files, root, file, /*read=*/true));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> VersionsIn(FileSystem& files, const std::string& root) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(root));
  std::vector<std::string> versions;
  for (const std::string& name : names) {
    if (!CheckName(name).ok()) continue;
    const absl::StatusOr<bool> there = files.Exists(PathBelow(root, VersionPath(name)));
    if (there.ok() && *there) versions.push_back(name);
  }
  return versions;
}

absl::StatusOr<std::set<std::string>> FoldersInUse(FileSystem& files, const std::string& root) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> versions, VersionsIn(files, root));
  std::set<std::string> used;
  for (const std::string& folder : versions) {
    used.insert(folder);
    const absl::StatusOr<ServingVersion> version = ReadVersion(files, root, folder, 0);
    if (version.ok()) used.merge(FoldersOf(*version));
  }
  return used;
}

absl::Status RemoveOldVersions(FileSystem& files, const std::string& root, size_t keep) {
  CISTERN_ASSIGN_OR_RETURN(const ServingHead head, ReadHead(files, root));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> versions, VersionsIn(files, root));
  std::set<std::string> kept = {head.folder};
  for (size_t i = versions.size() - std::min(keep, versions.size()); i < versions.size(); ++i) {
    kept.insert(versions[i]);
  }
  std::set<std::string> needed;
  for (const std::string& folder : kept) {
    const absl::StatusOr<ServingVersion> version = ReadVersion(files, root, folder, 0);
    // Nobody can serve a version whose description is corrupt.
    if (absl::IsDataLoss(version.status()) && folder != head.folder) continue;
    CISTERN_RETURN_IF_ERROR(version.status());
    needed.insert(folder);
    needed.merge(FoldersOf(*version));
  }
  for (const std::string& folder : versions) {
    // Other versions may need the files of a version whose own layers are going.
    const absl::StatusOr<ServingVersion> version = ReadVersion(files, root, folder, 0);
    const std::set<std::string> own = version.ok() ? FoldersOf(*version) : std::set{folder};
    const bool stays = std::includes(needed.begin(), needed.end(), own.begin(), own.end());
    if (stays || kept.count(folder) != 0) continue;
    // First the description: a version without one does not exist.
    CISTERN_RETURN_IF_ERROR(files.Remove(PathBelow(root, VersionPath(folder))));
  }
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(root));
  for (const std::string& name : names) {
    if (!IsVersionName(name) || needed.count(name) != 0) continue;
    CISTERN_RETURN_IF_ERROR(RemoveTree(files, absl::StrCat(root, "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace cistern
