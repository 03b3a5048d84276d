// The files of a saved model. The format is the same whether each server writes its own shards
// (`cistern save`) or one worker writes everything (`cistern train --out`). Byte by byte:
// docs/formats.md.
//
// clang-format off
//   NAME/<table>/part-<server:03>-<shard:05>       sparse: one line per row (value_text.h); one
//                                                  file per shard
//   NAME/<table>/part-<server:03>                  dense: one line per row, one number per column;
//                                                  the rows of dense_range.h in order, server after
//                                                  server; no file if the table was never written
//   NAME/part-<server:03>-of-<server_num:03>.json  written last: lists what this writer wrote
// clang-format on
//
// The name of a file with rows ends in .bin if the rows are records (value_binary.h), followed by
// .gz if the file is compressed.
//
// The JSON file:
//
// clang-format off
//   {"format": 1, "server": r, "server_num": n, "shard_num": s, "pass": p, "schema": {...},
//    "files": [{"name": "deep/part-000-00003", "rows": 12, "bytes": 345,
//               "xxh3": "16 hex digits", "digest": "16 hex digits"}, ...],
//    "self_xxh3": "16 hex digits"}
// clang-format on
//
// A digest may be absent. A folder is complete when all n JSON files exist and agree on everything
// except "server" and "files". Format 2 adds the mode and the format of the save; it is written
// unless these are ALL and plain text.
//
// A writer writes the files first and calls WritePart last. A model without its JSON files does not
// exist, so an interrupted save is never read. A file is durable before it gets its name, and its
// folder is durable before the JSON file gets its name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/io/gzip.h"
#include "proto/checkpoint.pb.h"
#include "proto/control_plane.pb.h"
#include "proto/schema.pb.h"

struct XXH3_state_s;

namespace cistern {

struct ModelFile {
  std::string name;  // relative to the folder
  uint64_t rows = 0, bytes = 0, xxh3 = 0;
  // The sum of the row hashes (row_digest.h), equal to the digest of a table that loads the rows.
  // Unknown for older saves and for formats that do not preserve every bit.
  std::optional<uint64_t> digest;
};

struct ModelPart {
  uint32_t server = 0, server_num = 1, shard_num = 64;
  uint64_t pass = 0;
  v1::SaveMode mode = v1::ALL;  // which rows are saved
  v1::SaveFormat format;        // of all files
  v1::Schema schema;
  std::vector<ModelFile> files;
};

std::string SparsePartName(const std::string& table, uint32_t server, uint32_t shard,
                           const v1::SaveFormat& format = v1::SaveFormat());
std::string DensePartName(const std::string& table, uint32_t server,
                          const v1::SaveFormat& format = v1::SaveFormat());
// The kind and the gzip flag that the suffix of a file name encodes.
v1::SaveFormat FormOfName(absl::string_view name);
std::string PartJsonName(uint32_t server, uint32_t server_num);

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
  ModelFileWriter(FileSystem& files, std::string path);
  absl::Status Store(absl::string_view bytes);
  absl::Status Finish();

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> out_;  // null after the rename
  std::unique_ptr<GzipWriter> gzip_;   // null: not compressed
  ModelFile file_;
  absl::Status status_;  // the first error
  XXH3_state_s* const hash_state_;
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

// kAlreadyExists if `folder` already holds the JSON file of this part, or one of a save by another
// number of servers: a saved model never changes. Call this before writing the files.
absl::Status CheckPartIsNew(FileSystem& files, const std::string& folder, uint32_t server,
                            uint32_t server_num);

// Reverts WritePart: removes the JSON file of a part if it is of pass `pass`, and returns the files
// that it lists, which the caller must remove.
absl::StatusOr<std::vector<ModelFile>> UnmakePart(FileSystem& files, const std::string& folder,
                                                  uint32_t server, uint32_t server_num,
                                                  uint64_t pass);

// Writes the JSON file of a part, which makes the part exist. kAlreadyExists as in CheckPartIsNew;
// kInvalidArgument if its files do not match its schema.
absl::Status WritePart(FileSystem& files, const std::string& folder, const ModelPart& part);

// Reads all JSON files, sorted by server, and checks that they form a whole model: the server that
// owns a shard of a sparse table lists it exactly once; a dense table has all of its rows or none;
// no other file is listed. kNotFound: the folder holds no model. kDataLoss, naming the file: the
// model is unreadable, incomplete or contradictory.
absl::StatusOr<std::vector<ModelPart>> ReadParts(FileSystem& files, const std::string& folder);

// The file of each shard of a sparse table of a whole model.
std::vector<ModelFile> FilesByShard(const std::string& table, const std::vector<ModelPart>& parts);
// The file of each server for a dense table, by server; nullopt for a server that has none.
std::vector<std::optional<ModelFile>> FilesByServer(const std::string& table,
                                                    const std::vector<ModelPart>& parts);

// The row count and digest of each table of a whole model, as recorded by its parts: sparse tables
// before dense ones; a dense table that was never written has no rows. nullopt if any file has no
// digest.
std::optional<std::vector<v1::TableState>> TableStatesOf(const std::vector<ModelPart>& parts);

}  // namespace cistern
