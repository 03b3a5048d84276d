#include "app/data/given_tables.h"

#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/hash_text.h"
#include "common/base/stream_hash.h"
#include "common/io/file_system.h"
#include "common/io/new_file.h"
#include "common/io/piece_reader.h"
#include "worker/data/recipe/table_files.h"

namespace cistern::app {
namespace {

constexpr uint64_t kMaxListBytes = uint64_t{64} << 20;
constexpr size_t kHashDigits = 16;

// The hash of a file's bytes, as text; "" of a file that is empty or not of this machine.
absl::StatusOr<std::string> HashOf(FileSystem& files, const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(path);
  if (!file.ok() || (*file)->bytes() == 0) return std::string();
  const uint64_t bytes = (*file)->bytes();
  PieceReader reader(file->get(), bytes);
  StreamHash hash;
  for (uint64_t offset = 0; offset < bytes; offset += PieceReader::kPieceBytes) {
    const size_t size = std::min<uint64_t>(PieceReader::kPieceBytes, bytes - offset);
    CISTERN_ASSIGN_OR_RETURN(const absl::string_view piece, reader.Get(offset, size));
    hash.Add(piece);
  }
  return HashText(hash.value());
}

struct GivenFile {
  std::string hash, path;
};

// The files that have a hash.
absl::StatusOr<std::vector<GivenFile>> FilesOf(FileSystem& files,
                                               const std::vector<std::string>& tables,
                                               const JobCalls& calls) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, data::TableFiles(tables));
  std::vector<GivenFile> given;
  for (const std::string& path : paths) {
    CISTERN_RETURN_IF_ERROR(calls.CheckStop());
    CISTERN_ASSIGN_OR_RETURN(const std::string hash, HashOf(files, path));
    if (!hash.empty() && !absl::StrContains(path, '\n')) given.push_back({hash, path});
  }
  return given;
}

std::string LinesOf(const std::vector<GivenFile>& given) {
  std::string lines;
  for (const GivenFile& file : given) absl::StrAppend(&lines, file.hash, " ", file.path, "\n");
  return lines;
}

}  // namespace

absl::Status ListFirstTable(const std::string& out, const std::string& table,
                            const JobCalls& calls) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::vector<GivenFile> first, FilesOf(files, {table}, calls));
  return WriteWhole(files, absl::StrCat(out, "/", kTablesFile), LinesOf(first));
}

std::vector<std::string> GivenTables(const std::string& out) {
  LocalFileSystem files;
  const absl::StatusOr<std::string> list =
      ReadWhole(files, absl::StrCat(out, "/", kTablesFile), kMaxListBytes);
  std::vector<std::string> paths;
  if (!list.ok()) return paths;
  for (const absl::string_view line : absl::StrSplit(*list, '\n', absl::SkipEmpty())) {
    if (line.size() <= kHashDigits) continue;
    const absl::string_view path = line.substr(kHashDigits + 1);
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.emplace_back(path);
  }
  return paths;
}

absl::Status NoteRepeatedTables(const std::string& out, const std::vector<std::string>& tables,
                                const JobCalls& calls) {
  LocalFileSystem files;
  const std::string path = absl::StrCat(out, "/", kTablesFile);
  absl::StatusOr<std::string> list = ReadWhole(files, path, kMaxListBytes);
  if (absl::IsNotFound(list.status())) list = std::string();  // the run of an older version
  CISTERN_RETURN_IF_ERROR(list.status());
  CISTERN_ASSIGN_OR_RETURN(const std::vector<GivenFile> now, FilesOf(files, tables, calls));
  const std::string lines = LinesOf(now);
  if (now.empty() || absl::EndsWith(absl::StrCat("\n", *list), absl::StrCat("\n\n", lines))) {
    return absl::OkStatus();
  }
  std::map<std::string, std::string> given;  // hash -> path
  for (const absl::string_view line : absl::StrSplit(*list, '\n', absl::SkipEmpty())) {
    if (line.size() <= kHashDigits) continue;
    given.emplace(line.substr(0, kHashDigits), line.substr(kHashDigits + 1));
  }
  for (const GivenFile& file : now) {
    const auto [found, is_new] = given.emplace(file.hash, file.path);
    if (is_new) continue;
    calls.Note(absl::StrCat("note: ", file.path, " has the same bytes as ", found->second,
                            ", which this run was given before: its rows count twice"));
  }
  return WriteWhole(files, path, absl::StrCat(*list, "\n", lines));
}

}  // namespace cistern::app
