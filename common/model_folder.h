// The files of a saved model, the same whoever writes them: each server its shards (`cistern save`),
// or a worker everything (`cistern train --out`).
//
//   NAME/<table>/part-<server:03>-<shard:05>      sparse: a line a row (value_text.h), every shard
//   NAME/<table>/part-<server:03>                 dense: a line a row, one number a column; rows in
//                                                 order, server after server
//   NAME/part-<server:03>-of-<server_num:03>.json written last: what this writer wrote
//
// The json file: {"format": 1, "server": r, "server_num": n, "shard_num": s, "pass": p,
//   "schema": {...}, "files": [{"name": "deep/part-000-00003", "rows": 12, "bytes": 345,
//   "xxh3": "16 hex digits"}, ...]}. A folder is complete when all n json files are there and agree
// on everything but "server" and "files".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/status.h"
#include "common/value_layout.h"
#include "proto/schema.pb.h"

namespace cistern {

struct ModelFile {
  std::string name;  // below the folder
  uint64_t rows = 0, bytes = 0, xxh3 = 0;
};

struct ModelPart {
  uint32_t server = 0, server_num = 1, shard_num = 64;
  uint64_t pass = 0;
  v1::Schema schema;
  std::vector<ModelFile> files;
};

std::string SparsePartName(const std::string& table, uint32_t server, uint32_t shard);
std::string DensePartName(const std::string& table, uint32_t server);

// Writes one file of a model: buffered, hashed, flushed to disk by Close. Lines go to a temporary
// name; Close gives the file its own. Errors carry the path; no space left is kResourceExhausted.
//
// Threads: one at a time.
class ModelFileWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ModelFileWriter>> Create(const std::string& folder,
                                                                 const std::string& name);
  ~ModelFileWriter();  // removes the temporary file if Close was not reached
  // Appends whole lines; `rows` of them.
  absl::Status Append(absl::string_view lines, uint64_t rows);
  absl::StatusOr<ModelFile> Close();

 private:
  ModelFileWriter() = default;
  std::string folder_, buffer_;
  ModelFile file_;
  int fd_ = -1;
  void* hash_state_ = nullptr;
};

// Writes the json file of a part (to a temporary name, then renamed). kAlreadyExists if the folder
// holds that part already: a saved model never changes.
absl::Status WritePart(const std::string& folder, const ModelPart& part);

// Reads all json files and checks that they form a whole model. kNotFound: no model there;
// kDataLoss: unreadable, incomplete or contradictory, with the file's name.
absl::StatusOr<std::vector<ModelPart>> ReadParts(const std::string& folder);

// Reads one file of a model line by line and checks size, rows and hash against `file`; a mismatch is
// kDataLoss with the file's name. `line` errors get file and line number.
absl::Status ReadModelFile(const std::string& folder, const ModelFile& file,
                           const std::function<absl::Status(absl::string_view line)>& line);

}  // namespace cistern
