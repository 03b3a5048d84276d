#include "app/state/copied_files.h"

#include <utility>

#include "app/state/saved_place.h"
#include "common/io/new_file.h"
#include "server/checkpoint/row_file.h"

namespace cistern::app {

std::string ManifestName(uint64_t commit) {
  return absl::StrCat("manifest/", server::NumberName(commit));
}
std::string DataName(const std::string& file) {
  return absl::StrCat("data/", file);
}

absl::Status BadFile(const absl::Status& status) {
  return absl::IsDataLoss(status) ? WithKind(status, ErrorKind::kBadCheckpoint) : status;
}

// Reads every block. kDataLoss, with the path: the file is missing, another one, or corrupt.
absl::Status VerifyFile(FileSystem& files, const std::string& folder, const v1::RowFile& file) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<server::RowFileReader> reader,
                           server::RowFileReader::Open(files, folder, file));
  return reader->Verify();
}

// The manifest of a commit of the copy, by way of a file in `folder`.
absl::StatusOr<server::ParsedManifest> CopiedManifest(CopyPlace& place, uint64_t commit,
                                                      FileSystem& files,
                                                      const std::string& folder) {
  const std::string local = absl::StrCat(folder, "/copied-manifest");
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files, local));
  CISTERN_RETURN_IF_ERROR(place.Get(ManifestName(commit), local));
  absl::StatusOr<server::ParsedManifest> parsed = server::ReadManifestFile(files, local);
  CISTERN_RETURN_IF_ERROR(files.Remove(local));
  const std::string path = place.PathOf(ManifestName(commit));
  if (!parsed.ok()) return BadFile(AddContext(parsed.status(), path));
  if (parsed->manifest.commit() == commit) return parsed;
  return BadFile(absl::DataLossError(
      absl::StrCat(path, " is the manifest of commit ", parsed->manifest.commit())));
}

// The locks of a state that no server uses.
absl::StatusOr<std::vector<std::unique_ptr<FileLock>>> LockServers(FileSystem& files,
                                                                   const std::string& state,
                                                                   uint32_t server_num) {
  std::vector<std::unique_ptr<FileLock>> locks;
  for (uint32_t server = 0; server < server_num; ++server) {
    absl::StatusOr<std::unique_ptr<FileLock>> lock =
        files.Lock(absl::StrCat(state, "/lock-", server));
    if (absl::IsFailedPrecondition(lock.status())) {
      return WithFix(
          absl::FailedPreconditionError(absl::StrCat(state, " is in use by server ", server)),
          "stop the server that uses this folder, then repeat this command");
    }
    CISTERN_RETURN_IF_ERROR(lock.status());
    locks.push_back(*std::move(lock));
  }
  return locks;
}

// The manifest in a file, or the newest one of a state.
absl::StatusOr<server::ParsedManifest> ManifestAt(FileSystem& files, const std::string& path) {
  const absl::StatusOr<std::unique_ptr<server::StateFolder>> state = FindState(files, path);
  if (state.ok()) return ReadCommit(**state, 0);
  const absl::StatusOr<server::ParsedManifest> parsed = server::ReadManifestFile(files, path);
  if (!absl::IsNotFound(parsed.status()) && !absl::IsInvalidArgument(parsed.status())) {
    return parsed.ok() ? parsed : BadFile(parsed.status());
  }
  return WithFix(absl::InvalidArgumentError(
                     absl::StrCat(path, " is neither a manifest nor a state of servers")),
                 "name a file of manifest/ in a state folder, or a data_dir");
}

}  // namespace cistern::app
