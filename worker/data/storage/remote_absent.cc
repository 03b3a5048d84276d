// remote.h in builds without Arrow.
#include "worker/data/storage/remote.h"

#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

absl::Status Absent(const std::string& path) {
  return absl::UnimplementedError(absl::StrCat(
      path.substr(0, path.find("://")),
      ":// paths need Arrow, which this program was built without: run scripts/install_deps.sh and "
      "build again, or copy the files to this machine"));
}

}  // namespace

void CloseRemoteStorage() {}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenRemoteSource(const std::string& path) {
  return Absent(path);
}

absl::StatusOr<std::vector<std::string>> MatchingRemoteFiles(const std::string& pattern) {
  return Absent(pattern);
}

absl::StatusOr<std::vector<RemoteEntry>> ListRemote(const std::string& path) {
  return Absent(path);
}

absl::Status WriteRemote(ByteSource&, const std::string& path) {
  return Absent(path);
}

absl::Status RemoveRemote(const std::string& path) {
  return Absent(path);
}

}  // namespace cistern::data
