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
// "commit": c, "manifest_xxh3": "16 hex digits" follow the pass if servers that keep commits have
// saved the model; saved_commit.h tells which commit any model was saved from.
//
// "days": [[first pass, day], ...] follow if a table expires rows by day
// (common/value/pass_days.h).
//
// A digest may be absent. A folder is complete when all n JSON files exist and agree on everything
// except "server" and "files". Format 2 adds the mode and the format of the save; it is written
// unless these are ALL and plain text.
//
// A writer writes the files first and calls WritePart last. A model without its JSON files does not
// exist, so an interrupted save is never read. A file is durable before it gets its name, and its
// folder is durable before the JSON file gets its name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/saved_model/model_file.h"
#include "proto/checkpoint.pb.h"
#include "proto/control_plane.pb.h"
#include "proto/schema.pb.h"

namespace cistern {

struct ModelPart {
  uint32_t server = 0, server_num = 1, shard_num = 64;
  uint64_t pass = 0;
  // The durable commit whose rows they are, and the hash of its manifest; 0: none, or not recorded
  // here (saved_commit.h).
  uint64_t commit = 0, manifest_xxh3 = 0;
  v1::PassDays days;            // of the passes up to `pass`, if a table expires rows by day
  v1::SaveMode mode = v1::ALL;  // which rows are saved
  v1::SaveFormat format;        // of all files
  v1::Schema schema;
  std::vector<ModelFile> files;
};

std::string SparsePartName(const std::string& table, uint32_t server, uint32_t shard,
                           const v1::SaveFormat& format = v1::SaveFormat());
std::string DensePartName(const std::string& table, uint32_t server,
                          const v1::SaveFormat& format = v1::SaveFormat());
std::string PartJsonName(uint32_t server, uint32_t server_num);

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
