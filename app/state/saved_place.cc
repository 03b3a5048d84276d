#include "app/state/saved_place.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/hash_text.h"
#include "common/base/machine_limits.h"
#include "common/base/thread_limit.h"

namespace cistern::app {

absl::StatusOr<std::unique_ptr<server::StateFolder>> FindState(FileSystem& files,
                                                               const std::string& path) {
  std::string folder = path;
  while (folder.size() > 1 && absl::EndsWith(folder, "/")) folder.pop_back();
  absl::StatusOr<std::unique_ptr<server::StateFolder>> below =
      server::StateFolder::OpenToRead(files, server::StateFolderOf(folder));
  if (!absl::IsNotFound(below.status())) return below;
  return server::StateFolder::OpenToRead(files, folder);
}

absl::StatusOr<std::unique_ptr<server::StateFolder>> FindGivenState(FileSystem& files,
                                                                    const std::string& path) {
  absl::StatusOr<std::unique_ptr<server::StateFolder>> state = FindState(files, path);
  if (!absl::IsNotFound(state.status())) return state;
  return WithFix(WithCode(state.status(), absl::StatusCode::kInvalidArgument),
                 "name the data_dir of the servers, or the folder state in it");
}

absl::StatusOr<uint64_t> NewestCommit(const server::StateFolder& state) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, state.Commits());
  if (!commits.empty()) return commits.back();
  return WithFix(absl::InvalidArgumentError(absl::StrCat(state.path(), " has no commit yet")),
                 "its servers have not committed a pass yet: train first");
}

absl::StatusOr<server::ParsedManifest> ReadCommit(const server::StateFolder& state,
                                                  uint64_t commit) {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t newest, NewestCommit(state));
  absl::StatusOr<server::ParsedManifest> manifest =
      state.ReadManifest(commit == 0 ? newest : commit);
  if (absl::IsNotFound(manifest.status())) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<uint64_t> commits, state.Commits());
    return WithFix(
        absl::InvalidArgumentError(absl::StrCat(state.path(), " has no commit ", commit)),
        absl::StrCat("existing commits: ", absl::StrJoin(commits, ", ")));
  }
  if (!manifest.ok()) return WithKind(manifest.status(), ErrorKind::kBadCheckpoint);
  return manifest;
}

absl::Status CheckSize(FileSystem& files, const std::string& folder, const std::string& name,
                       uint64_t bytes) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = files.Open(PathBelow(folder, name));
  if (absl::IsNotFound(file.status()) || absl::IsInvalidArgument(file.status())) {
    return WithCode(file.status(), absl::StatusCode::kDataLoss);
  }
  CISTERN_RETURN_IF_ERROR(file.status());
  if ((*file)->bytes() == bytes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(folder, "/", name, " has ", (*file)->bytes(), " bytes, not ", bytes));
}

std::string DigestText(uint64_t digest) {
  return HashText(digest);
}

int ThreadsOf(uint64_t wanted) {
  return static_cast<int>(
      std::min<uint64_t>(wanted == 0 ? static_cast<uint64_t>(CoreCount()) : wanted, kMaxThreads));
}

}  // namespace cistern::app
