#include "worker/data/storage/path_list.h"

#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/data/storage/remote.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

std::string PlainPath(const std::string& path) {
  return WithoutFileScheme(absl::StripAsciiWhitespace(path));
}

bool IsFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(PlainPath(path), error);
}

// Whether `part` can be what follows a comma in the name of a remote path.
bool MayContinueRemote(const std::string& part) {
  return !part.empty() && !IsRemote(PlainPath(part)) && !absl::StartsWith(part, "/");
}

}  // namespace

bool PathExists(const std::string& path) {
  const std::string plain = PlainPath(path);
  if (IsRemote(plain)) {
    const absl::StatusOr<std::vector<RemoteEntry>> found = ListRemote(plain);
    return found.ok() && !found->empty();
  }
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(plain, error));
}

std::vector<std::string> SplitPaths(const std::string& text) {
  if (!absl::StrContains(text, ",")) return {text};
  if (!IsRemote(PlainPath(text)) && PathExists(text)) return {text};
  const std::vector<std::string> parts = SplitOutsideBraces(text);
  std::vector<std::string> paths;
  for (size_t i = 0; i < parts.size(); ++i) {
    paths.push_back(parts[i]);
    const bool is_remote = IsRemote(PlainPath(parts[i]));
    // Another path may begin with the name of a folder: "lr=0.1" beside "lr=0.1,dim=8".
    if (parts[i].empty() || parts[i] == "-" || (!is_remote && IsFile(parts[i]))) continue;
    std::string joined = parts[i];
    for (size_t end = i + 1; end < parts.size(); ++end) {
      if (is_remote && !MayContinueRemote(parts[end])) break;
      absl::StrAppend(&joined, ",", parts[end]);
      if (!PathExists(joined)) continue;
      paths.back() = joined;
      i = end;
      break;
    }
  }
  return paths;
}

}  // namespace cistern::data
