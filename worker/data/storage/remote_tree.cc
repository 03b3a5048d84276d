#include "worker/data/storage/remote_tree.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "common/base/thread_pool.h"
#include "common/io/new_file.h"
#include "worker/data/storage/remote.h"

namespace cistern::data {
namespace {

constexpr char kUnfinished[] = ".unfinished";
constexpr size_t kCopiedPiece = size_t{4} << 20;
constexpr size_t kAtOnce = 8;  // files that are copied

absl::string_view LastName(absl::string_view name) {
  return name.substr(name.rfind('/') + 1);  // npos + 1 is 0
}

absl::Status CopyFile(const RemoteEntry& entry, const std::string& path, const std::string& local) {
  LocalFileSystem files;
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenRemoteSource(path));
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::Create(files, local));
  std::string piece(kCopiedPiece, '\0');
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t size, source->Read(piece.data(), piece.size()));
    if (size == 0) break;
    CISTERN_RETURN_IF_ERROR(file->Append(absl::string_view(piece.data(), size)));
  }
  CISTERN_RETURN_IF_ERROR(file->Close());
  if (file->bytes() == entry.bytes) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": read ", file->bytes(), " of ", entry.bytes,
                                             " bytes: it changed while it was copied"));
}

void SortByRank(std::vector<std::string>* names) {
  absl::c_sort(*names, [](const std::string& a, const std::string& b) {
    return std::make_pair(UploadRank(a), a) < std::make_pair(UploadRank(b), b);
  });
}

// The files to copy, by rank and name; one empty name if `local` is a file.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& local) {
  std::error_code error;
  if (std::filesystem::is_regular_file(local, error)) return std::vector<std::string>{""};
  std::vector<std::string> names;
  std::filesystem::recursive_directory_iterator at(local, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    const std::string name = at->path().string().substr(local.size() + 1);
    // The files in .donefiles-<id> are copied under the names of the links to them.
    const bool is_left_out = absl::EndsWith(name, ".tmp") || absl::StartsWith(name, ".donefiles") ||
                             absl::StartsWith(LastName(name), "lock-") || LastName(name) == ".lock";
    if (at->is_regular_file() && !is_left_out) names.push_back(name);
  }
  if (error) return absl::InternalError(absl::StrCat("list ", local, ": ", error.message()));
  SortByRank(&names);
  return names;
}

class NoBytes : public ByteSource {
 public:
  absl::StatusOr<size_t> Read(char*, size_t) override { return 0; }
  uint64_t file_bytes_read() const override { return 0; }
  const std::string& path() const override { return path_; }

 private:
  const std::string path_;
};

absl::Status WriteMark(const std::string& path) {
  NoBytes nothing;
  return WriteRemote(nothing, path);
}

absl::Status WriteFile(const std::string& local, const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenFileSource(local));
  return WriteRemote(*source, path);
}

std::string PathOf(const std::string& path, const std::string& name) {
  return name.empty() ? path : RemoteChild(path, name);
}

absl::Status RemoveAll(const std::string& path, const std::vector<std::string>& names) {
  // The files that make the folder valid go first.
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    CISTERN_RETURN_IF_ERROR(RemoveRemote(PathOf(path, *name)));
  }
  return absl::OkStatus();
}

absl::Status AlreadyExists(const std::string& path, const std::vector<RemoteEntry>& found) {
  return absl::AlreadyExistsError(absl::StrCat(
      path, " holds ", found.size() == 1 ? "a file" : absl::StrCat(found.size(), " files"),
      " already, and files of object stores and HDFS are never replaced: name another folder, or "
      "remove what is there"));
}

bool IsUnfinished(const std::vector<RemoteEntry>& found) {
  return absl::c_any_of(found, [](const RemoteEntry& one) { return one.name == kUnfinished; });
}

// Removes what a killed copy left.
absl::Status MakeNew(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<RemoteEntry> found, ListRemote(path));
  if (found.empty()) return absl::OkStatus();
  if (!IsUnfinished(found)) return AlreadyExists(path, found);
  std::vector<std::string> names;
  for (const RemoteEntry& one : found) {
    if (one.name != kUnfinished) names.push_back(one.name);
  }
  SortByRank(&names);
  return RemoveAll(path, names);
}

// Calls copy(name) for every name, several at a time: a request waits longer than it works. Returns
// the first error; what comes after one is left out.
absl::Status CopyEach(const std::vector<std::string>& names, const TreeProgress& progress,
                      const std::function<absl::Status(const std::string& name)>& copy) {
  ThreadPool pool(static_cast<int>(std::clamp<size_t>(names.size(), 1, kAtOnce)));
  absl::Mutex mutex;
  absl::Status first;
  size_t done = 0;
  pool.ParallelFor(names.size(), [&](size_t i) {
    {
      absl::MutexLock lock(&mutex);
      if (!first.ok()) return;
      progress(names[i], done++, names.size());
    }
    const absl::Status copied = copy(names[i]);
    absl::MutexLock lock(&mutex);
    if (first.ok()) first = copied;
  });
  return first;
}

absl::Status CopyFolder(const std::string& local, const std::string& path,
                        const std::vector<std::string>& names, const TreeProgress& progress) {
  for (int rank = 0; rank <= UploadRank(names.back()); ++rank) {
    std::vector<std::string> these;
    absl::c_copy_if(names, std::back_inserter(these),
                    [&](const std::string& name) { return UploadRank(name) == rank; });
    CISTERN_RETURN_IF_ERROR(CopyEach(these, progress, [&](const std::string& name) {
      return WriteFile(absl::StrCat(local, "/", name), PathOf(path, name));
    }));
  }
  return absl::OkStatus();
}

}  // namespace

std::string RemoteChild(absl::string_view folder, absl::string_view name) {
  const size_t query = std::min(folder.find('?'), folder.size());
  absl::string_view path = folder.substr(0, query);
  while (absl::EndsWith(path, "/") && !absl::EndsWith(path, "://")) path.remove_suffix(1);
  return absl::StrCat(path, "/", name, folder.substr(query));
}

std::string RemoteParent(absl::string_view path) {
  const size_t query = std::min(path.find('?'), path.size());
  const absl::string_view place = path.substr(0, query);
  return absl::StrCat(place.substr(0, place.rfind('/')), path.substr(query));
}

std::string RemoteName(absl::string_view path) {
  path = path.substr(0, path.find('?'));
  while (absl::EndsWith(path, "/")) path.remove_suffix(1);
  return std::string(LastName(path));
}

int UploadRank(absl::string_view name) {
  const absl::string_view last = LastName(name);
  if (last == "HEAD") return 2;
  for (const absl::string_view list :
       {"file_list.txt", "manifest.json", "_metadata.json", "serving.json", "xbox.json",
        "cache.json", "dnn_plugin.json", "donefile.txt", "metrics.jsonl"}) {
    if (last == list) return 1;
  }
  const bool is_part = absl::StartsWith(last, "part-") && absl::EndsWith(last, ".json");
  return is_part || absl::StrContains(name, "manifest/") || absl::StrContains(name, "donefile/")
             ? 1
             : 0;
}

absl::Status CopyFromRemote(const std::string& path, const std::string& local,
                            const TreeProgress& progress) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<RemoteEntry> found, ListRemote(path));
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(path, " does not exist"));
  }
  if (IsUnfinished(found)) {
    return absl::DataLossError(
        absl::StrCat(path, " is an unfinished copy: repeat the command that writes it"));
  }
  std::map<std::string, RemoteEntry> entries;
  std::vector<std::string> names;
  for (const RemoteEntry& one : found) {
    entries[one.name] = one;
    names.push_back(one.name);
  }
  return CopyEach(names, progress, [&](const std::string& name) {
    return CopyFile(entries.at(name), PathOf(path, name),
                    name.empty() ? local : absl::StrCat(local, "/", name));
  });
}

absl::Status CheckRemoteIsNew(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<RemoteEntry> found, ListRemote(path));
  return found.empty() || IsUnfinished(found) ? absl::OkStatus() : AlreadyExists(path, found);
}

absl::Status CopyToRemote(const std::string& local, const std::string& path,
                          const TreeProgress& progress) {
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> names, FilesOf(local));
  CISTERN_RETURN_IF_ERROR(MakeNew(path));
  if (names.empty()) return absl::OkStatus();
  if (names[0].empty()) return WriteFile(local, path);
  const std::string mark = RemoteChild(path, kUnfinished);
  CISTERN_RETURN_IF_ERROR(WriteMark(mark));
  const absl::Status copied = CopyFolder(local, path, names, progress);
  if (!copied.ok()) {
    // The original error is reported; if nothing can be removed, the mark says what this is.
    if (RemoveAll(path, names).ok()) RemoveRemote(mark).IgnoreError();
    return copied;
  }
  return RemoveRemote(mark);
}

}  // namespace cistern::data
