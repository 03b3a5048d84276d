// The files of a saved model, the same whoever writes them: each server its shards (`cistern
// save`), or a worker everything (`cistern train --out`). Byte by byte: docs/formats.md.
//
//   NAME/<table>/part-<server:03>-<shard:05>       sparse: a line a row (value_text.h); every shard
//   NAME/<table>/part-<server:03>                  dense: a line a row, one number a column; the
//   rows
//                                                  of dense_range.h in order, server after server;
//                                                  no file where a table was never written
//   NAME/part-<server:03>-of-<server_num:03>.json  written last: what this writer wrote
//
// Behind the name of a file with rows stands .bin where they are records (value_binary.h), and then
// .gz where the file is compressed.
//
// The json file: {"format": 1, "server": r, "server_num": n, "shard_num": s, "pass": p,
//   "schema": {...}, "files": [{"name": "deep/part-000-00003", "rows": 12, "bytes": 345,
//   "xxh3": "16 hex digits", "digest": "16 hex digits"}, ...], "self_xxh3": "16 hex digits"}, where
// a digest may be absent. A folder is complete when all n
// json files are there and agree on everything but "server" and "files". Format 2 also has the mode
// and the format of the save, where they are not ALL and plain text.
//
// Writing: files first, WritePart last; a model without its json files does not exist, so one that
// was interrupted is never read. A file is synced to disk before it gets its name, and its folder
// before the json file gets its own.
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
  std::string name;  // below the folder
  uint64_t rows = 0, bytes = 0, xxh3 = 0;
  // Sum over the rows of their hashes (row_digest.h), as tables that load them have it; none where
  // that is not known: older saves, and formats that do not hold every bit.
  std::optional<uint64_t> digest;
};

struct ModelPart {
  uint32_t server = 0, server_num = 1, shard_num = 64;
  uint64_t pass = 0;
  v1::SaveMode mode = v1::ALL;  // which rows there are
  v1::SaveFormat format;        // of all files
  v1::Schema schema;
  std::vector<ModelFile> files;
};

std::string SparsePartName(const std::string& table, uint32_t server, uint32_t shard,
                           const v1::SaveFormat& format = v1::SaveFormat());
std::string DensePartName(const std::string& table, uint32_t server,
                          const v1::SaveFormat& format = v1::SaveFormat());
// What the end of a file's name says: kind and gzip.
v1::SaveFormat FormOfName(absl::string_view name);
std::string PartJsonName(uint32_t server, uint32_t server_num);

// Writes one file of a model: buffered, hashed and, where its name ends in .gz, compressed. Rows go
// to a temporary name; Close syncs it to disk and gives it its own. Errors carry the path; no space
// left is kResourceExhausted, and the temporary file is removed. After an error every further call
// returns it again.
//
// Threads: one at a time; writers of different files are independent.
class ModelFileWriter {
 public:
  // Makes folders as needed. kInvalidArgument unless `name` is two names (common/base/names.h) with
  // a slash between them.
  static absl::StatusOr<std::unique_ptr<ModelFileWriter>> Create(FileSystem& files,
                                                                 const std::string& folder,
                                                                 const std::string& name);
  ~ModelFileWriter();  // removes the temporary file if Close was not reached
  ModelFileWriter(const ModelFileWriter&) = delete;
  ModelFileWriter& operator=(const ModelFileWriter&) = delete;

  // Appends whole lines or records; `rows` of them.
  absl::Status Append(absl::string_view bytes, uint64_t rows);
  absl::StatusOr<ModelFile> Close();

 private:
  ModelFileWriter(FileSystem& files, std::string path);
  absl::Status Store(absl::string_view bytes);
  absl::Status Finish();

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> out_;  // null once it has its name
  std::unique_ptr<GzipWriter> gzip_;   // null: not compressed
  ModelFile file_;
  absl::Status status_;  // the first error
  XXH3_state_s* const hash_state_;
};

// Reads one file of a model row by row (a line without its end, or a record) and checks size, rows
// and hash of the stored bytes against `file`; a mismatch, like an error of `row`, comes back with
// the path (kDataLoss), an error of `row` with the number of the line or record too, and reading
// stops there. The hash is known only at the end: on an error the caller drops whatever it got.
absl::Status ReadModelFile(FileSystem& files, const std::string& folder, const ModelFile& file,
                           const std::function<absl::Status(absl::string_view row)>& row);

// The same for a file of which nothing is recorded. Lines may end as on Windows, too.
absl::Status ReadForeignFile(FileSystem& files, const std::string& folder, const std::string& name,
                             const std::function<absl::Status(absl::string_view row)>& row);

// kAlreadyExists if `folder` holds the json file of this part already, or one of a save by another
// number of servers: a saved model never changes. To be asked before the files are written.
absl::Status CheckPartIsNew(FileSystem& files, const std::string& folder, uint32_t server,
                            uint32_t server_num);

// The opposite of WritePart: removes the json file of a part, if there is one of pass `pass`, and
// returns the files that it names, which are the caller's to remove.
absl::StatusOr<std::vector<ModelFile>> UnmakePart(FileSystem& files, const std::string& folder,
                                                  uint32_t server, uint32_t server_num,
                                                  uint64_t pass);

// Writes the json file of a part, which makes it exist. kAlreadyExists as CheckPartIsNew;
// kInvalidArgument if its files are not those of its schema.
absl::Status WritePart(FileSystem& files, const std::string& folder, const ModelPart& part);

// Reads all json files, by server, and checks that they form a whole model: every shard of every
// sparse table is listed once, by the server that owns it; all rows of a dense table are, or none;
// and nothing else is. kNotFound: no model
// there; kDataLoss: unreadable, incomplete or contradictory, with the file's name.
absl::StatusOr<std::vector<ModelPart>> ReadParts(FileSystem& files, const std::string& folder);

// What each table of a whole model holds, by what its parts record: sparse tables before dense
// ones; a dense table that was never written has no rows. None if a file has no digest.
std::optional<std::vector<v1::TableState>> TableStatesOf(const std::vector<ModelPart>& parts);

}  // namespace cistern
