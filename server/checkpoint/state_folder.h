// The folder in which a cluster's commits live, shared by all its servers: names and files, no
// rows.
//
//   epoch/<20 digits>      a coordinator's claim (epoch_claim.h)
//   manifest/<20 digits>   one per commit (manifest.h)
//   data/                  row files (row_file.h): base-<commit>-<epoch>-<server>[.<try>],
//   delta-... lock-<server>          held by the process that is this server
//
// Every name is given once and never taken back while something may need it. A manifest comes under
// its name whole or not at all: it is written and synced under a temporary name first.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "common/types.h"
#include "server/checkpoint/epoch_claim.h"
#include "server/checkpoint/manifest.h"

namespace cistern {

// The state folder below a server's data_dir. No saved model may have its name.
inline constexpr char kStateName[] = "state";
inline std::string StateFolderOf(const std::string& data_dir) {
  return data_dir + "/" + kStateName;
}

// Threads: any thread; two processes exclude each other by the lock and by exclusive names.
class StateFolder {
 public:
  // Makes what is missing and takes the lock of `server`. kFailedPrecondition if another process
  // has it, or if the file system gives a name twice. kDataLoss if manifests are missing.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Open(FileSystem& files,
                                                           const std::string& path,
                                                           uint32_t server);
  // For tools: takes no lock and makes nothing. kNotFound if `path` is no state folder.
  static absl::StatusOr<std::unique_ptr<StateFolder>> OpenToRead(FileSystem& files,
                                                                 const std::string& path);

  FileSystem& files() const { return files_; }
  const std::string& path() const { return path_; }
  std::string data_path() const { return path_ + "/data"; }

  // 0 if none was claimed.
  absl::StatusOr<Epoch> NewestEpoch() const;
  // kAlreadyExists if the claim's epoch or a newer one was claimed.
  absl::Status CreateEpoch(const EpochClaim& claim);
  // kNotFound if nobody has claimed it.
  absl::StatusOr<EpochClaim> ReadEpoch(Epoch epoch) const;

  // Numbers of the manifests that are there, ascending.
  absl::StatusOr<std::vector<uint64_t>> Commits() const;
  absl::StatusOr<bool> HasManifest(uint64_t commit) const;
  // kNotFound; kDataLoss with the path if it cannot be trusted.
  absl::StatusOr<ParsedManifest> ReadManifest(uint64_t commit) const;
  // The one with the highest number, which must be readable; none at first.
  absl::StatusOr<std::optional<ParsedManifest>> NewestManifest() const;
  // Returns its hash once it is durable. kAlreadyExists: this commit was decided before.
  absl::StatusOr<uint64_t> WriteManifest(const v1::Manifest& manifest);

  // Returns when every name that a manifest has now survives a loss of power.
  absl::Status SyncManifests() { return files_.SyncFolder(path_ + "/manifest"); }

  // The highest attempt in the names of the row files of `server`; 0 if there is none.
  absl::StatusOr<uint32_t> NewestAttempt(uint32_t server) const;

  // Removes manifests and epochs that are older than the newest `keep` (epochs: than the newest).
  absl::Status RemoveOld(uint64_t newest_commit, uint64_t keep);
  // Removes row files of commit <= newest_commit that are not in `named`, of `server`, or, where
  // `strays`, of any server from server_num on.
  absl::Status RemoveUnnamed(uint64_t newest_commit, const std::set<std::string>& named,
                             uint32_t server, bool strays, uint32_t server_num);

 private:
  StateFolder(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  absl::Status CheckManifests() const;
  absl::StatusOr<std::vector<uint64_t>> Numbers(const std::string& folder) const;
  std::string ManifestPath(uint64_t commit) const;
  std::string EpochPath(Epoch epoch) const;

  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<FileLock> lock_;
};

// The name of a row file, taken apart; nothing if it is none.
struct RowFileName {
  bool base = false;
  uint64_t commit = 0;
  Epoch epoch = 0;
  uint32_t server = 0;
  uint32_t attempt = 0;  // 0: no suffix
};
std::string FormatRowFileName(const RowFileName& name);
std::optional<RowFileName> ParseRowFileName(const std::string& name);

}  // namespace cistern
