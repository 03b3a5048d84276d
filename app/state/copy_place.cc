#include "app/state/copy_place.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/io/byte_source.h"
#include "common/io/new_file.h"
#include "server/checkpoint/state_folder.h"
#include "worker/data/storage/remote.h"
#include "worker/data/storage/remote_tree.h"
#include "worker/data/storage/storage.h"

namespace cistern::app {
namespace {

constexpr size_t kPiece = size_t{4} << 20;

// Copies all of `source` to the new file `path`, and syncs it.
absl::Status CopyAll(ByteSource& source, FileSystem& files, const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.Create(path));
  std::string piece(kPiece, '\0');
  while (true) {
    CISTERN_ASSIGN_OR_RETURN(const size_t size, source.Read(piece.data(), piece.size()));
    if (size == 0) break;
    CISTERN_RETURN_IF_ERROR(file->Append(absl::string_view(piece.data(), size)));
  }
  CISTERN_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

// Copies to `path` under a temporary name first.
absl::Status CopyWhole(ByteSource& source, FileSystem& files, const std::string& path,
                       const std::string& temporary) {
  CISTERN_RETURN_IF_ERROR(RemoveIfThere(files, temporary));  // of a copy that was killed
  absl::Status copied = CopyAll(source, files, temporary);
  if (copied.ok()) copied = files.Replace(temporary, path);
  if (copied.ok()) return files.SyncFolder(ParentFolder(path));
  RemoveIfThere(files, temporary).IgnoreError();  // the first error is the one to report
  return copied;
}

class LocalPlace : public CopyPlace {
 public:
  LocalPlace(FileSystem& files, const std::string& data_dir)
      : files_(files), state_(server::StateFolderOf(data_dir)) {}

  std::string PathOf(const std::string& name) const override {
    return name.empty() ? state_ : absl::StrCat(state_, "/", name);
  }
  absl::StatusOr<std::map<std::string, uint64_t>> List(const std::string& folder) override {
    std::map<std::string, uint64_t> found;
    const absl::StatusOr<std::vector<std::string>> names = files_.List(PathOf(folder));
    if (absl::IsNotFound(names.status())) return found;
    CISTERN_RETURN_IF_ERROR(names.status());
    for (const std::string& name : *names) {
      if (absl::StrContains(name, kUnfinished)) continue;
      const auto file = files_.Open(absl::StrCat(PathOf(folder), "/", name));
      if (absl::IsNotFound(file.status())) continue;  // removed in the meantime
      CISTERN_RETURN_IF_ERROR(file.status());
      found[name] = (*file)->bytes();
    }
    return found;
  }
  absl::Status Put(const std::string& local, const std::string& name,
                   const std::string& writer) override {
    for (const char* folder : {"epoch", "manifest", "data"}) {
      CISTERN_RETURN_IF_ERROR(files_.MakeFolders(PathOf(folder)));
    }
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenFileSource(local));
    return CopyWhole(*source, files_, PathOf(name),
                     absl::StrCat(PathOf(name), kUnfinished, writer));
  }
  absl::Status Get(const std::string& name, const std::string& local) override {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source,
                             OpenFileSource(PathOf(name)));
    return CopyWhole(*source, files_, local, local + kUnfinished);
  }
  absl::Status Remove(const std::string& name) override {
    return RemoveIfThere(files_, PathOf(name));
  }

 private:
  static constexpr char kUnfinished[] = ".unfinished-";

  FileSystem& files_;
  const std::string state_;
};

class RemotePlace : public CopyPlace {
 public:
  RemotePlace(FileSystem& files, const std::string& path)
      : files_(files), state_(data::RemoteChild(path, server::kStateName)) {}

  std::string PathOf(const std::string& name) const override {
    return name.empty() ? state_ : data::RemoteChild(state_, name);
  }
  absl::StatusOr<std::map<std::string, uint64_t>> List(const std::string& folder) override {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<data::RemoteEntry> entries,
                             data::ListRemote(PathOf(folder)));
    std::map<std::string, uint64_t> found;
    for (const data::RemoteEntry& entry : entries) {
      if (!entry.name.empty()) found[entry.name] = entry.bytes;
    }
    return found;
  }
  absl::Status Put(const std::string& local, const std::string& name,
                   const std::string& /*writer*/) override {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenFileSource(local));
    return data::WriteRemote(*source, PathOf(name));
  }
  absl::Status Get(const std::string& name, const std::string& local) override {
    CISTERN_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source,
                             data::OpenRemoteSource(PathOf(name)));
    return CopyWhole(*source, files_, local, local + ".unfinished");
  }
  absl::Status Remove(const std::string& name) override { return data::RemoveRemote(PathOf(name)); }

 private:
  FileSystem& files_;
  const std::string state_;
};

}  // namespace

std::unique_ptr<CopyPlace> CopyPlace::At(FileSystem& files, const std::string& path) {
  if (data::IsRemote(path)) return std::make_unique<RemotePlace>(files, path);
  return std::make_unique<LocalPlace>(files, data::WithoutFileScheme(path));
}

}  // namespace cistern::app
