// The folder in which a cluster's commits live, shared by all its servers: names and files, no
// rows.
//
//   epoch/<20 digits>      a coordinator's claim, and the newest commit at that time, so that its
//                          manifest is missed if it is lost (epoch_claim.h)
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

#include "common/base/types.h"
#include "common/io/file_system.h"
#include "server/checkpoint/epoch_claim.h"
#include "server/checkpoint/manifest.h"

namespace cistern {

// The state folder below a server's data_dir. No saved model may have its name.
inline constexpr char kStateName[] = "state";
inline std::string StateFolderOf(const std::string& data_dir) {
  return data_dir + "/" + kStateName;
}

// Attempts of merged bases lie above this one, those of Prepare below.
inline constexpr uint32_t kFirstMergeAttempt = 1000;

// Threads: any thread; two processes exclude each other by the lock and by exclusive names.
class StateFolder {
 public:
  // Nobody claims an epoch or makes a commit above these: there would be none left for the next
  // writer. Claims are one above the newest, so only a hostile or broken writer comes here.
  static constexpr Epoch kMaxEpoch = Epoch{1} << 48;
  static constexpr uint64_t kMaxCommit = uint64_t{1} << 48;

  // Makes what is missing and takes the lock of `server`. kFailedPrecondition if another process
  // has it, or if the file system gives a name twice. kDataLoss if manifests are missing: the
  // newest two do not follow one another, or a row file or a claim proves a newer commit.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Open(FileSystem& files,
                                                           const std::string& path,
                                                           uint32_t server);
  // For tools: takes no lock and makes nothing. kNotFound if `path` is no state folder.
  static absl::StatusOr<std::unique_ptr<StateFolder>> OpenToRead(FileSystem& files,
                                                                 const std::string& path);

  FileSystem& files() const { return files_; }
  const std::string& path() const { return path_; }
  std::string data_path() const { return path_ + "/data"; }

  // The highest epoch of a claim, of the newest manifest and of a row file: claims that are lost do
  // not make fencing start again. 0 if there is none.
  absl::StatusOr<Epoch> NewestEpoch() const;
  // kAlreadyExists if the claim's epoch or a newer one was claimed; kFailedPrecondition where
  // CheckEpochsAreLeft refuses, or above kMaxEpoch. The claim's commit is the newest one here.
  absl::Status CreateEpoch(const EpochClaim& claim);
  // kNotFound if nobody has claimed it.
  absl::StatusOr<EpochClaim> ReadEpoch(Epoch epoch) const;
  // kFailedPrecondition, with the command that repairs the folder, if no epoch can be claimed after
  // `newest`.
  absl::Status CheckEpochsAreLeft(Epoch newest) const;
  // Removes claims from kMaxEpoch on and makes one above every other epoch that is known; returns
  // those that it removed, and does nothing where there is none. Only under the locks of all
  // servers (repair_epochs.h).
  absl::StatusOr<std::vector<Epoch>> RepairEpochs();

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
  // The highest epoch of the newest manifest and of the row files, but for those above kMaxEpoch.
  absl::StatusOr<Epoch> NewestWrittenEpoch() const;
  absl::Status WriteClaim(EpochClaim claim);
  // The commit that a claim was made after; 0 if it does not say.
  absl::StatusOr<uint64_t> CommitOfClaim(Epoch epoch) const;
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
