#include "worker/data/format/parquet_error.h"

#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <parquet/exception.h>

#include <new>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/data/storage/remote_file.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

constexpr int64_t kMagicSize = 4;
constexpr int64_t kMinParquetBytes = 12;  // the magic bytes twice, and the size of the footer

// How the file shows that its end is missing; "" if it does not, or cannot be read.
absl::StatusOr<std::string> HowCutShort(const std::string& path) {
  std::shared_ptr<arrow::io::RandomAccessFile> file;
  if (IsRemote(path)) {
    CISTERN_ASSIGN_OR_RETURN(file, OpenRemoteFile(path));
  } else {
    const auto opened = arrow::io::ReadableFile::Open(path);
    if (!opened.ok()) return "";
    file = *opened;
  }
  const arrow::Result<int64_t> bytes = file->GetSize();
  if (!bytes.ok()) return "";
  if (*bytes < kMinParquetBytes) {
    return absl::StrCat("it has ", *bytes, " bytes, and a Parquet file at least ",
                        kMinParquetBytes);
  }
  const auto begin = file->ReadAt(0, kMagicSize);
  const auto end = file->ReadAt(*bytes - kMagicSize, kMagicSize);
  if (!begin.ok() || !end.ok()) return "";
  const std::string first = (*begin)->ToString(), last = (*end)->ToString();
  const bool whole = last == "PAR1" || last == "PARE";
  return first == "PAR1" && !whole ? "it begins with PAR1 but does not end with it" : "";
}

// Whether Arrow reports a feature of the format that it, or this build of it, does not have.
bool IsBeyondArrow(const std::exception& error) {
  const auto* failed = dynamic_cast<const parquet::ParquetStatusException*>(&error);
  if (failed != nullptr && failed->status().IsNotImplemented()) return true;
  const std::string what = absl::AsciiStrToLower(error.what());
  for (const char* const text : {"unsupported compression", "not supported", "unknown encoding",
                                 "not yet implemented", "encrypted"}) {
    if (absl::StrContains(what, text)) return true;
  }
  return false;
}

}  // namespace

absl::Status ParquetReadError(const std::string& path, const ParquetMemory* memory,
                              const std::exception& error) {
  if (memory != nullptr && memory->refused() > 0) {
    return absl::DataLossError(
        absl::StrCat(path, " is corrupt: one of its pages requests ", memory->refused(),
                     " bytes of memory, but a file of this size needs at most ", memory->limit(),
                     " (64 MiB plus 1024 times the file size)"));
  }
  const auto* failed = dynamic_cast<const parquet::ParquetStatusException*>(&error);
  if (IsRemote(path) && failed != nullptr && failed->status().IsIOError()) {
    return RemoteError(path, failed->status());
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": not enough memory to read it"));
  }
  if (IsBeyondArrow(error)) {
    return absl::UnimplementedError(
        absl::StrCat(path, " cannot be read: ", error.what(),
                     ": write it without encryption, with zstd or snappy pages"));
  }
  CISTERN_ASSIGN_OR_RETURN(const std::string how, HowCutShort(path));
  if (!how.empty()) {
    return WithKind(
        absl::DataLossError(absl::StrCat(path, " is cut short: ", how, "; copy it again")),
        ErrorKind::kCutShort);
  }
  return absl::DataLossError(
      absl::StrCat(path, " is corrupt, or not a Parquet file: ", error.what()));
}

}  // namespace cistern::data
