#include "server/checkpoint/copy_record.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/names.h"
#include "common/io/new_file.h"

namespace cistern::server {
namespace {

constexpr uint64_t kMaxRecordBytes = uint64_t{16} << 20;

}  // namespace

std::string FormatCopyRecord(const CopyRecord& record) {
  std::string text = absl::StrCat("commit ", record.commit, "\n");
  for (const std::string& file : record.files) absl::StrAppend(&text, "file ", file, "\n");
  return text;
}

absl::StatusOr<CopyRecord> ParseCopyRecord(absl::string_view text) {
  CopyRecord record;
  const bool whole = absl::ConsumeSuffix(&text, "\n");
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  absl::string_view commit = lines[0];
  if (!whole || !absl::ConsumePrefix(&commit, "commit ") ||
      !absl::SimpleAtoi(commit, &record.commit)) {
    return absl::DataLossError("it does not begin with the number of a commit");
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    absl::string_view name = lines[i];
    if (!absl::ConsumePrefix(&name, "file ") || !CheckName(std::string(name)).ok()) {
      return absl::DataLossError(absl::StrCat("line ", i + 1, " does not name a file"));
    }
    record.files.emplace(name);
  }
  return record;
}

absl::StatusOr<CopyRecord> ReadCopyRecord(FileSystem& files, const std::string& state,
                                          const std::string& name) {
  const std::string path = absl::StrCat(state, "/", name);
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadWhole(files, path, kMaxRecordBytes));
  absl::StatusOr<CopyRecord> record = ParseCopyRecord(text);
  if (!record.ok()) return AddContext(record.status(), path);
  return record;
}

absl::Status WriteCopyRecord(FileSystem& files, const std::string& state, const std::string& name,
                             const CopyRecord& record) {
  const std::string path = absl::StrCat(state, "/", name), fresh = path + ".tmp";
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files, fresh));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(fresh));
  CISTERN_RETURN_IF_ERROR(file->Append(FormatCopyRecord(record)));
  CISTERN_RETURN_IF_ERROR(file->Close());
  return files.Replace(fresh, path);
}

}  // namespace cistern::server
