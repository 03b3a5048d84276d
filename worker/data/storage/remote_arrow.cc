// remote.h and remote_file.h through Arrow's file systems.
#include <arrow/filesystem/filesystem.h>
#include <arrow/filesystem/gcsfs.h>
#include <arrow/filesystem/hdfs.h>
#include <arrow/util/config.h>
#include <arrow/util/io_util.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "worker/data/storage/remote.h"
#include "worker/data/storage/remote_file.h"
#include "worker/data/storage/remote_source.h"
#include "worker/data/storage/storage.h"
#ifdef CISTERN_HAS_S3
#include <arrow/filesystem/s3fs.h>
#endif

namespace cistern::data {
namespace {

namespace fs = arrow::fs;

constexpr double kConnectSeconds = 10, kAnswerSeconds = 30;
constexpr int64_t kAttempts = 3;  // of one request, with growing pauses
constexpr size_t kMaxText = 500;  // of a library's error
constexpr size_t kWritePiece = size_t{4} << 20;

// A URI in parts: "s3://bucket/key?region=x" is "s3://", "bucket/key", "?region=x".
struct Uri {
  std::string scheme, path, query;
};

Uri Split(const std::string& text) {
  Uri uri;
  const size_t begin = text.find("://") + 3;
  const size_t query = std::min(text.find('?', begin), text.size());
  uri.scheme = text.substr(0, begin);
  uri.path = text.substr(begin, query - begin);
  uri.query = text.substr(query);
  return uri;
}

// Masks the credentials of the environment, in case a server has repeated them.
std::string WithoutCredentials(std::string text) {
  for (const char* name : {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') text = absl::StrReplaceAll(text, {{value, "***"}});
  }
  return text;
}

absl::Status CheckUri(const Uri& uri) {
  const std::string authority = uri.path.substr(0, uri.path.find('/'));
  const size_t at = authority.find('@');
  const bool names_user = at != std::string::npos &&
                          (authority.find(':') < at || !absl::StartsWith(uri.scheme, "hdfs"));
  if (names_user || absl::StrContains(uri.query, "key=") ||
      absl::StrContains(uri.query, "token=")) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", uri.scheme,
                     " path contains credentials: leave them out, and set them in the "
                     "environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                     "GOOGLE_APPLICATION_CREDENTIALS, KRB5CCNAME)"));
  }
  return absl::OkStatus();
}

arrow::Result<std::shared_ptr<fs::FileSystem>> MakeS3(const std::string& uri) {
#ifdef CISTERN_HAS_S3
  ARROW_RETURN_NOT_OK(fs::EnsureS3Initialized());
  ARROW_ASSIGN_OR_RAISE(fs::S3Options options, fs::S3Options::FromUri(uri));
  options.connect_timeout = kConnectSeconds;
  options.request_timeout = kAnswerSeconds;
  options.allow_delayed_open = true;  // a small file is written by one request
  options.retry_strategy = fs::S3RetryStrategy::GetAwsStandardRetryStrategy(kAttempts);
  return fs::S3FileSystem::Make(options);
#else
  return arrow::Status::NotImplemented("this build of Arrow has no S3");
#endif
}

arrow::Result<std::shared_ptr<fs::FileSystem>> MakeGcs(const std::string& uri) {
  ARROW_ASSIGN_OR_RAISE(fs::GcsOptions options, fs::GcsOptions::FromUri(uri, nullptr));
  options.retry_limit_seconds = kAnswerSeconds;
  return fs::GcsFileSystem::Make(options);
}

arrow::Result<std::shared_ptr<fs::FileSystem>> MakeHdfs(const std::string& uri) {
  ARROW_ASSIGN_OR_RAISE(const fs::HdfsOptions options, fs::HdfsOptions::FromUri(uri));
  return fs::HadoopFileSystem::Make(options);
}

// The file systems of the process, one per server and set of options: their clients keep
// connections. They are the process's, because the S3 library is: it starts once, and
// CloseRemoteStorage stops it. The object itself is never destroyed, because the library's own
// objects are gone when exit handlers run.
//
// Threads: any thread.
class FileSystems {
 public:
  static FileSystems& OfProcess() {
    static FileSystems* const systems = new FileSystems;
    return *systems;
  }

  void Close() {
    absl::MutexLock lock(&mutex_);
    systems_.clear();
#ifdef CISTERN_HAS_S3
    if (fs::IsS3Initialized()) (void)fs::EnsureS3Finalized();
#endif
  }

  absl::StatusOr<std::shared_ptr<fs::FileSystem>> Of(const std::string& path) {
    const Uri uri = Split(path);
    CISTERN_RETURN_IF_ERROR(CheckUri(uri));
    const bool is_hdfs = uri.scheme == "hdfs://" || uri.scheme == "viewfs://";
    // The bucket does not matter to a client; the region that Arrow finds for it does.
    const std::string authority = uri.path.substr(0, uri.path.find('/'));
    const std::string key = absl::StrCat(uri.scheme, authority, uri.query);
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<fs::FileSystem>& system = systems_[key];
    if (system != nullptr) return system;
    const std::string whole = absl::StrCat(uri.scheme, uri.path, uri.query);
    auto made = is_hdfs ? MakeHdfs(whole) : uri.scheme == "s3://" ? MakeS3(whole) : MakeGcs(whole);
    if (!made.ok()) return RemoteError(path, made.status());
    system = *made;
    return system;
  }

 private:
  FileSystems() = default;

  absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<fs::FileSystem>> systems_ ABSL_GUARDED_BY(mutex_);
};

// The path of `uri` inside its file system.
std::string InnerPath(const Uri& uri) {
  const bool is_hdfs = uri.scheme == "hdfs://" || uri.scheme == "viewfs://";
  return is_hdfs ? uri.path.substr(std::min(uri.path.find('/'), uri.path.size())) : uri.path;
}

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Whether `name` is that of a file in a folder or below it: no part is empty, "." or "..".
bool IsNameBelow(const std::string& name) {
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return name.find('\0') == std::string::npos;
}

absl::Status WriteAll(ByteSource& source, arrow::io::OutputStream& out, const std::string& path) {
  std::string piece(kWritePiece, '\0');
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t size, source.Read(piece.data(), piece.size()));
    if (size == 0) break;
    const arrow::Status wrote = out.Write(piece.data(), static_cast<int64_t>(size));
    if (!wrote.ok()) return RemoteError(path, wrote);
  }
  const arrow::Status closed = out.Close();
  return closed.ok() ? absl::OkStatus() : RemoteError(path, closed);
}

}  // namespace

void CloseRemoteStorage() {
  FileSystems::OfProcess().Close();
}

absl::Status RemoteError(const std::string& path, const arrow::Status& status) {
  const std::string text = WithoutCredentials(status.message());
  // Some errors list every place that was searched.
  const std::string message = absl::StrCat(
      path, ": ", absl::string_view(text).substr(0, std::min(text.find('\n'), kMaxText)));
  const auto says = [&](absl::string_view words) { return absl::StrContains(message, words); };
  if (says("Unable to load lib")) {
    return absl::FailedPreconditionError(absl::StrCat(
        message,
        ": hdfs:// needs Hadoop and Java on this machine: set HADOOP_HOME and JAVA_HOME, "
        "and CLASSPATH to the output of `hadoop classpath --glob`"));
  }
  if (arrow::internal::ErrnoFromStatus(status) == ENOENT || says("NO_SUCH_") ||
      says("does not exist") || says("RESOURCE_NOT_FOUND")) {
    return absl::NotFoundError(message);
  }
  if (says("ACCESS_DENIED") || says("INVALID_ACCESS_KEY_ID") || says("SIGNATURE_DOES_NOT_MATCH") ||
      says("Permission denied") || says("PermissionDenied")) {
    return absl::PermissionDeniedError(absl::StrCat(
        message, " (check the credentials in the environment, and the bucket's rules)"));
  }
  if (status.IsOutOfMemory()) return absl::ResourceExhaustedError(message);
  if (status.IsNotImplemented()) return absl::UnimplementedError(message);
  if (status.IsInvalid()) return absl::InvalidArgumentError(message);
  return absl::UnavailableError(message);
}

absl::StatusOr<std::shared_ptr<arrow::io::RandomAccessFile>> OpenRemoteFile(
    const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<fs::FileSystem> system,
                           FileSystems::OfProcess().Of(path));
  auto file = system->OpenInputFile(InnerPath(Split(path)));
  if (!file.ok()) return RemoteError(path, file.status());
  return *file;
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenRemoteSource(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(std::shared_ptr<arrow::io::RandomAccessFile> file, OpenRemoteFile(path));
  return MakeRemoteSource(path, std::move(file));
}

absl::StatusOr<std::vector<std::string>> MatchingRemoteFiles(const std::string& pattern) {
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<fs::FileSystem> system,
                           FileSystems::OfProcess().Of(pattern));
  const Uri uri = Split(pattern);
  const std::string inner = InnerPath(uri);
  const size_t wildcard = std::min(inner.find_first_of("*["), inner.size());
  const size_t slash = inner.rfind('/', wildcard);
  fs::FileSelector selector;
  selector.base_dir = inner.substr(0, slash == std::string::npos ? 0 : slash);
  selector.recursive = inner.find('/', wildcard) != std::string::npos;
  selector.allow_not_found = true;
  const auto found = system->GetFileInfo(selector);
  if (!found.ok()) return RemoteError(pattern, found.status());
  const std::string front =
      absl::StrCat(uri.scheme, uri.path.substr(0, uri.path.size() - inner.size()));
  std::vector<std::string> paths;
  for (const fs::FileInfo& file : *found) {
    if (!file.IsFile() || fnmatch(inner.c_str(), file.path().c_str(), FNM_PATHNAME) != 0) continue;
    paths.push_back(absl::StrCat(front, file.path(), uri.query));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<std::vector<RemoteEntry>> ListRemote(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<fs::FileSystem> system,
                           FileSystems::OfProcess().Of(path));
  fs::FileSelector below;
  below.base_dir = WithoutSlash(InnerPath(Split(path)));
  below.recursive = below.allow_not_found = true;
  const auto itself = system->GetFileInfo(below.base_dir);
  if (!itself.ok()) return RemoteError(path, itself.status());
  if (itself->IsFile()) {
    return std::vector<RemoteEntry>{{"", static_cast<uint64_t>(itself->size())}};
  }
  const auto found = system->GetFileInfo(below);
  if (!found.ok()) return RemoteError(path, found.status());
  std::vector<RemoteEntry> entries;
  for (const fs::FileInfo& file : *found) {
    if (!file.IsFile()) continue;
    const std::string name =
        file.path().substr(below.base_dir == "/" ? 1 : below.base_dir.size() + 1);
    if (!IsNameBelow(name)) {
      return absl::DataLossError(absl::StrCat(path, ": holds the object '", name,
                                              "', whose name is not a valid file name"));
    }
    entries.push_back({name, static_cast<uint64_t>(std::max<int64_t>(file.size(), 0))});
  }
  std::sort(entries.begin(), entries.end(),
            [](const RemoteEntry& a, const RemoteEntry& b) { return a.name < b.name; });
  return entries;
}

absl::Status WriteRemote(ByteSource& source, const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<fs::FileSystem> system,
                           FileSystems::OfProcess().Of(path));
  const auto out = system->OpenOutputStream(InnerPath(Split(path)));
  if (!out.ok()) return RemoteError(path, out.status());
  const absl::Status written = WriteAll(source, **out, path);
  // Closing would complete a file that is only partly written.
  if (!written.ok()) (void)(*out)->Abort();
  return written;
}

absl::Status RemoveRemote(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::shared_ptr<fs::FileSystem> system,
                           FileSystems::OfProcess().Of(path));
  const arrow::Status removed = system->DeleteFile(InnerPath(Split(path)));
  if (removed.ok()) return absl::OkStatus();
  const absl::Status error = RemoteError(path, removed);
  return absl::IsNotFound(error) ? absl::OkStatus() : error;
}

}  // namespace cistern::data
