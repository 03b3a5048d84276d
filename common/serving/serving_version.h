// A serving folder: the versions of a model that can be served, one of which is the current one.
//
//   HEAD                      {"version":"0000000042","xxh3":"..."}: the current version and the
//                             XXH3 of its serving.json; replaced by renaming
//   LOCK                      held by the process that writes a version
//   BASE_LOCK                 held by the process that merges layers into a new base
//   0000000042/serving.json   what the version consists of (below), written after its files
//   0000000042/model.json     the model file
//   0000000042/dense.bin      dense parameters: float32, table after table, without optimizer state
//   0000000042/rows-000.rows  the rows of table 0 (rows_file.h), or those that changed
//   0000000042/base-000.rows  all rows of table 0 as of this version, for later versions
//   0000000042/recipe.json, vocabulary.txt   how text becomes samples of the model, if that is
//   known
//
// A table may consist of several layers, which may belong to older versions: all rows of some
// version, then the changes of later ones. So may recipe and vocabulary. Folders are named after
// their commit; a second version of the same commit is called 0000000042-002.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/serving/row_precision.h"

namespace cistern {

struct ServingFile {
  std::string path;  // below the serving folder: "0000000042/dense.bin"
  uint64_t bytes = 0, xxh3 = 0;
  bool operator==(const ServingFile&) const = default;
};

struct ServingTable {
  std::string name;
  uint32_t dim = 0;
  uint64_t rows = 0, digest = 0;    // of all layers together (RowsEncoder::digest)
  std::vector<ServingFile> layers;  // oldest first
  // The digest of the oldest layer, if there are several; unset in versions of older programs.
  std::optional<uint64_t> base_digest = std::nullopt;
};

struct ServingDense {
  std::string name;
  uint64_t rows = 0;
};

struct ServingVersion {
  std::string folder;                                // "0000000042"
  std::string name;                                  // of the model, by which clients ask for it
  uint64_t commit = 0, manifest_xxh3 = 0, pass = 0;  // as CommittedVersion
  std::string created;                               // wall-clock time, informational only
  RowPrecision precision = RowPrecision::kFloat32;
  ServingFile model;
  std::vector<std::string> overrides;  // --set
  ServingFile dense;
  std::vector<ServingDense> dense_tables;
  std::vector<ServingTable> tables;
  std::optional<ServingFile> recipe, vocabulary;

  // What clients see as the model's version: the commit, or the pass of a state without commits.
  uint64_t number() const { return commit > 0 ? commit : pass; }
};

// The text of serving.json. It ends with a hash of itself.
std::string FormatVersion(const ServingVersion& version);
// kDataLoss: not such a text, a hash mismatch, a path that leaves the folder, or a newer format.
absl::StatusOr<ServingVersion> ParseVersion(const std::string& text);

// HEAD of a serving folder.
struct ServingHead {
  std::string folder;
  uint64_t xxh3 = 0;  // of its serving.json
  bool operator==(const ServingHead&) const = default;
};
// kNotFound: the folder has no HEAD; kDataLoss: it is malformed; kInvalidArgument: it is not a
// file.
absl::StatusOr<ServingHead> ReadHead(FileSystem& files, const std::string& root);
// kDataLoss if HEAD has other bytes than WriteHead writes, though it may name a version.
absl::Status CheckHeadBytes(FileSystem& files, const std::string& root);
// The HEAD that would name an existing version.
absl::StatusOr<ServingHead> HeadOf(FileSystem& files, const std::string& root,
                                   const std::string& folder);
// Makes a version the current one, durably.
absl::Status WriteHead(FileSystem& files, const std::string& root, const ServingHead& head);

// Reads a version. xxh3: of its serving.json; 0: any. kNotFound, kDataLoss.
absl::StatusOr<ServingVersion> ReadVersion(FileSystem& files, const std::string& root,
                                           const std::string& folder, uint64_t xxh3);
// Reads every byte of a version's files. kDataLoss names a file that is missing or corrupt.
// checked: what need not be read again; what was read is added.
absl::Status CheckAllFiles(FileSystem& files, const std::string& root,
                           const ServingVersion& version, std::set<std::string>* checked);
// Reads every file of a version but the first layer of each table, which can be large: of that, the
// size is checked. kDataLoss names a file that is missing or corrupt.
absl::Status CheckSmallFiles(FileSystem& files, const std::string& root,
                             const ServingVersion& version);
// The versions in a serving folder whose serving.json exists, sorted by name.
absl::StatusOr<std::vector<std::string>> VersionsIn(FileSystem& files, const std::string& root);

// The folders that versions consist of, their own ones and those of files that they share.
absl::StatusOr<std::set<std::string>> FoldersInUse(FileSystem& files, const std::string& root);

// Removes all versions but the newest `keep` (by name), the current one, and those that need only
// files of these, and the folders that no version needs. A version whose description is corrupt is
// removed, unless it is the current one. The caller holds LOCK: the folder of a version that is
// being written has no description yet.
absl::Status RemoveOldVersions(FileSystem& files, const std::string& root, size_t keep);

}  // namespace cistern
