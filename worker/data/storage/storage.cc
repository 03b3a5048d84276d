#include "worker/data/storage/storage.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/io/decompressor.h"
#include "worker/data/storage/remote.h"
#include "worker/data/storage/standard_input.h"

namespace cistern::data {
namespace {

absl::Status NoMatch(const std::string& pattern) {
  return absl::NotFoundError(absl::StrCat("no file matches '", pattern, "'"));
}

absl::StatusOr<std::vector<std::string>> MatchingLocalFiles(const std::string& pattern) {
  glob_t found = {};
  const int result = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths;
  for (size_t i = 0; result == 0 && i < found.gl_pathc; ++i) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(found.gl_pathv[i], ignored)) {
      paths.emplace_back(found.gl_pathv[i]);
    }
  }
  globfree(&found);
  if (result == GLOB_NOSPACE) return absl::ResourceExhaustedError("out of memory in glob");
  if (paths.empty()) return NoMatch(pattern);
  std::sort(paths.begin(), paths.end());  // glob sorts by the locale
  return paths;
}

}  // namespace

bool IsRemote(absl::string_view path) {
  for (const absl::string_view scheme : {"s3://", "gs://", "gcs://", "hdfs://", "viewfs://"}) {
    if (absl::StartsWith(path, scheme)) return true;
  }
  return false;
}

std::string WithoutFileScheme(absl::string_view path) {
  absl::ConsumePrefix(&path, "file://");
  return std::string(path);
}

bool IsPattern(absl::string_view path) {
  if (!IsRemote(path)) return path.find_first_of("*?[") != absl::string_view::npos;
  return path.substr(0, path.find('?')).find_first_of("*[") != absl::string_view::npos;
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenSource(const std::string& path) {
  if (path == "-") return OpenStandardInput();
  CISTERN_ASSIGN_OR_RETURN(
      std::unique_ptr<ByteSource> source,
      IsRemote(path) ? OpenRemoteSource(path) : OpenFileSource(WithoutFileScheme(path)));
  return Decompressed(std::move(source));
}

absl::StatusOr<std::vector<std::string>> MatchingFiles(const std::string& pattern) {
  if (!IsRemote(pattern)) return MatchingLocalFiles(WithoutFileScheme(pattern));
  CISTERN_ASSIGN_OR_RETURN(std::vector<std::string> paths, MatchingRemoteFiles(pattern));
  if (paths.empty()) return NoMatch(pattern);
  return paths;
}

}  // namespace cistern::data
