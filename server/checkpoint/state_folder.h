// The folder that holds a cluster's commits. All servers share it, or each has one of its own
// (local state). This file deals with names and files, not with rows.
//
// clang-format off
//   epoch/<20 digits>      a writer's claim, with the newest commit at that time, so that the loss
//                          of that commit's manifest is noticed (term_claim.h)
//   manifest/<20 digits>   one per commit (manifest.h)
//   data/                  row files (row_file.h): base-<commit>-<term>-<server>[.<try>],
//                          delta-...
//   lock-<server>          held by the process that is this server
//   local-server           local state: the rank of the server whose folder this is alone
//   prepared-<server>, copied   for the program that copies the state (copy_record.h)
// clang-format on
//
// A name is used once and not reused while something may need it. A manifest appears under its name
// complete or not at all: it is first written and synced under a temporary name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/types.h"
#include "common/io/file_system.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/term_claim.h"

namespace cistern::server {

// The name of the state folder below a server's data_dir. A saved model must not have this name.
inline constexpr char kStateName[] = "state";
inline std::string StateFolderOf(const std::string& data_dir) {
  return data_dir + "/" + kStateName;
}

// Attempt numbers of merged bases start here; those of Prepare are below.
inline constexpr uint32_t kFirstMergeAttempt = 1000;
// Names with a higher attempt are not those of a server.
inline constexpr uint32_t kMaxAttempt = 1u << 31;

// Threads: any thread. Two processes exclude each other by the lock and by exclusive names.
class StateFolder {
 public:
  // No term or commit above these is accepted, because none would be left for the next writer. A
  // claim is one above the newest, so only a hostile or broken writer gets this far.
  static constexpr Term kMaxTerm = Term{1} << 48;
  static constexpr uint64_t kMaxCommit = uint64_t{1} << 48;

  // Creates missing folders and takes the lock of `server`. kFailedPrecondition if another process
  // holds the lock, or if the file system does not guarantee exclusive names. kDataLoss
  // if manifests are missing: the newest two are not consecutive, or a row file or a claim proves a
  // newer commit.
  // alone_of: for a local state, the number of servers. The locks of all are taken, so that no
  // other server can use the folder, now or later. 0: the servers share it. kFailedPrecondition if
  // the folder is another server's alone, or one server's and they want to share it.
  static absl::StatusOr<std::unique_ptr<StateFolder>> Open(FileSystem& files,
                                                           const std::string& path, uint32_t server,
                                                           uint32_t alone_of = 0);
  // For tools: takes no lock and creates nothing. kNotFound if `path` is not a state folder.
  static absl::StatusOr<std::unique_ptr<StateFolder>> OpenToRead(FileSystem& files,
                                                                 const std::string& path);

  // The server whose folder this is alone (local state); it has that server's row files only.
  std::optional<uint32_t> owner() const { return owner_; }
  // Whether only another server's folder has this file of the manifest.
  bool IsElsewhere(const v1::Manifest& manifest, const v1::RowFile& file) const {
    return owner_.has_value() && file.server_num() == manifest.server_num() &&
           file.server() != *owner_;
  }
  // Declares the owner: once the files are known to be that server's.
  absl::Status SetOwner(uint32_t server);

  FileSystem& files() const { return files_; }
  const std::string& path() const { return path_; }
  std::string data_path() const { return path_ + "/data"; }

  // The highest term among the claims, the newest manifest and the row files: losing claims does
  // not reset fencing. 0 if there is none.
  absl::StatusOr<Term> NewestTerm() const;
  // kAlreadyExists if the claim's term or a newer one was claimed; kFailedPrecondition where
  // CheckTermsAreLeft refuses, or above kMaxTerm. The claim records the newest commit in this
  // folder.
  absl::Status CreateTerm(const TermClaim& claim);
  // kNotFound if the term was not claimed.
  absl::StatusOr<TermClaim> ReadTerm(Term term) const;
  // kFailedPrecondition, with the command that repairs the folder, if no term can be claimed after
  // `newest`.
  absl::Status CheckTermsAreLeft(Term newest) const;
  // Removes claims at or above kMaxTerm, makes one above every other known term, and returns the
  // removed ones. Does nothing if there are none. Call only while holding the locks of all servers
  // (repair_terms.h).
  absl::StatusOr<std::vector<Term>> RepairTerms();

  // The numbers of the existing manifests, ascending.
  absl::StatusOr<std::vector<uint64_t>> Commits() const;
  absl::StatusOr<bool> HasManifest(uint64_t commit) const;
  // kNotFound if it does not exist; kDataLoss with the path if it cannot be trusted.
  absl::StatusOr<ParsedManifest> ReadManifest(uint64_t commit) const;
  // The manifest with the highest number, which must be readable; none before the first commit.
  absl::StatusOr<std::optional<ParsedManifest>> NewestManifest() const;
  // Returns the manifest's hash once it is durable. kAlreadyExists: this commit is already decided.
  // expected: what the hash must be; kInvalidArgument if it differs.
  absl::StatusOr<uint64_t> WriteManifest(const v1::Manifest& manifest,
                                         std::optional<uint64_t> expected = std::nullopt);

  // Returns once the names of all current manifests survive a power loss.
  absl::Status SyncManifests() { return files_.SyncFolder(path_ + "/manifest"); }

  // The highest attempt in the names of the row files of `server`; 0 if there is none.
  absl::StatusOr<uint32_t> NewestAttempt(uint32_t server) const;

  // Keeps the newest `keep` manifests and the newest claim; removes older ones.
  absl::Status RemoveOld(uint64_t newest_commit, uint64_t keep);
  // Removes the row files with commit <= newest_commit that are not in `named` and belong to a
  // server for which `removes` is true.
  absl::Status RemoveUnnamed(uint64_t newest_commit, const std::set<std::string>& named,
                             const std::function<bool(uint32_t server)>& removes);

 private:
  StateFolder(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  absl::Status CheckManifests() const;
  absl::Status ReadOwner();
  absl::Status CheckOwner(uint32_t server, bool alone) const;
  // The highest term of the newest manifest and of the row files, except those above kMaxTerm.
  absl::StatusOr<Term> NewestWrittenTerm() const;
  absl::Status WriteClaim(TermClaim claim);
  // The newest commit at the time of a claim; 0 if the claim does not record it.
  absl::StatusOr<uint64_t> CommitOfClaim(Term term) const;
  absl::StatusOr<std::vector<uint64_t>> Numbers(const std::string& folder) const;
  std::string ManifestPath(uint64_t commit) const;
  std::string TermPath(Term term) const;

  FileSystem& files_;
  const std::string path_;
  std::vector<std::unique_ptr<FileLock>> locks_;
  std::optional<uint32_t> owner_;
};

// Reads a manifest file, whatever its name. kNotFound if it does not exist; kDataLoss with the path
// if it cannot be trusted.
absl::StatusOr<ParsedManifest> ReadManifestFile(FileSystem& files, const std::string& path);

// The parsed name of a row file. ParseRowFileName returns nothing for any other name.
struct RowFileName {
  bool base = false;
  uint64_t commit = 0;
  Term term = 0;
  uint32_t server = 0;
  uint32_t attempt = 0;  // 0: no suffix
};
std::string FormatRowFileName(const RowFileName& name);
std::optional<RowFileName> ParseRowFileName(const std::string& name);

}  // namespace cistern::server
