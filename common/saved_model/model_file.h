// One file with rows of a saved model (model_folder.h): written, read and checked.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/base/stream_hash.h"
#include "common/io/file_system.h"
#include "common/io/gzip.h"
#include "proto/control_plane.pb.h"

namespace cistern {

struct ModelFile {
  std::string name;  // relative to the folder
  uint64_t rows = 0, bytes = 0, xxh3 = 0;
  // The sum of the row hashes (row_digest.h), equal to the digest of a table that loads the rows.
  // Unknown for older saves and for formats that do not preserve every bit.
  std::optional<uint64_t> digest;
};

// The suffix of the names of files in this format: ".bin.gz".
std::string SuffixOf(const v1::SaveFormat& format);
// The kind and the gzip flag that the suffix of a file name encodes.
v1::SaveFormat FormOfName(absl::string_view name);

// Writes one file of a model: buffered, hashed and, if its name ends in .gz, compressed. Rows go to
// a temporary file; Close syncs it to disk and renames it. Errors name the path; a full disk is
// kResourceExhausted. Errors are sticky, and the temporary file of a failed writer is removed.
//
// Threads: one at a time; writers of different files are independent.
class ModelFileWriter {
 public:
  // Creates folders as needed. kInvalidArgument unless `name` is two valid names
  // (common/base/names.h) separated by a slash.
  static absl::StatusOr<std::unique_ptr<ModelFileWriter>> Create(FileSystem& files,
                                                                 const std::string& folder,
                                                                 const std::string& name);
  ~ModelFileWriter();  // removes the temporary file unless Close succeeded
  ModelFileWriter(const ModelFileWriter&) = delete;
  ModelFileWriter& operator=(const ModelFileWriter&) = delete;

  // Appends `rows` whole lines or records.
  absl::Status Append(absl::string_view bytes, uint64_t rows);
  absl::StatusOr<ModelFile> Close();

 private:
  ModelFileWriter(FileSystem& files, FilePath path);
  absl::Status Store(absl::string_view bytes);
  absl::Status Finish();

  FileSystem& files_;
  const FilePath path_;
  std::unique_ptr<WritableFile> out_;  // null after the rename
  std::unique_ptr<GzipWriter> gzip_;   // null: not compressed
  ModelFile file_;
  absl::Status status_;  // the first error
  StreamHash hash_;
};

// Reads one file of a model, calls `row` for each row (a line without its newline, or a record),
// and checks the size, the row count and the hash of the stored bytes against `file`. A mismatch is
// kDataLoss and names the path. Reading stops at the first error of `row`, which is returned with
// the path and the number of the line or record. The hash is verified only at the end: after an
// error the caller must discard all rows that it has received.
absl::Status ReadModelFile(FileSystem& files, const std::string& folder, const ModelFile& file,
                           const std::function<absl::Status(absl::string_view row)>& row);

// The same for a file without a recorded size, row count and hash. Lines may also end with "\r\n".
absl::Status ReadForeignFile(FileSystem& files, const std::string& folder, const std::string& name,
                             const std::function<absl::Status(absl::string_view row)>& row);

}  // namespace cistern
