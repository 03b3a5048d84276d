#include "test/support/memory_file_system.h"

#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"
#include "common/io/file.h"
#include "test/support/memory_disk.h"

namespace cistern {

class MemoryFileSystem::MemoryWritableFile : public WritableFile {
 public:
  MemoryWritableFile(std::shared_ptr<Core> core, size_t node, std::string path)
      : core_(std::move(core)), node_(node), path_(std::move(path)) {}

  absl::Status Append(absl::string_view bytes) override {
    CISTERN_RETURN_IF_ERROR(status_);
    absl::MutexLock lock(&core_->mutex);
    DiskNode& node = core_->Changed()[node_];
    node.bytes->append(bytes.data(), bytes.size());
    DiskOperation operation;
    operation.kind = DiskOperation::kAppend;
    operation.node = node_;
    operation.size = node.bytes->size();
    operation.text = absl::StrCat("append ", bytes.size(), " bytes to ", path_);
    core_->Do(std::move(operation));
    return absl::OkStatus();
  }

  absl::Status WriteAt(uint64_t offset, absl::string_view bytes) override {
    CISTERN_RETURN_IF_ERROR(status_);
    absl::MutexLock lock(&core_->mutex);
    DiskNode& node = core_->Changed()[node_];
    CISTERN_CHECK(offset + bytes.size() <= node.size);
    // Copied first: disks returned by Crash share the bytes of files.
    node.bytes = std::make_shared<std::string>(*node.bytes);
    node.bytes->replace(offset, bytes.size(), bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    CISTERN_RETURN_IF_ERROR(status_);
    absl::MutexLock lock(&core_->mutex);
    DiskOperation operation;
    operation.kind = DiskOperation::kSyncFile;
    operation.node = node_;
    operation.text = absl::StrCat("sync ", path_);
    core_->Do(std::move(operation));
    return absl::OkStatus();
  }

  absl::Status Close() override {
    CISTERN_RETURN_IF_ERROR(status_);
    status_ = absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Core> core_;
  const size_t node_;
  const std::string path_;
  absl::Status status_;
};

class MemoryFileSystem::MemoryReadableFile : public ReadableFile {
 public:
  MemoryReadableFile(std::shared_ptr<Core> core, const DiskNode& node, std::string path)
      : core_(std::move(core)), bytes_(node.bytes), size_(node.size), path_(std::move(path)) {}

  uint64_t bytes() const override { return size_; }

  absl::Status Read(uint64_t offset, size_t size, char* out) const override {
    if (offset > size_ || size > size_ - offset) {
      return absl::DataLossError(absl::StrCat(path_, " ends at byte ", size_, ", before byte ",
                                              offset + size, ": the file was truncated"));
    }
    absl::MutexLock lock(&core_->mutex);  // the writer of the file may still append
    bytes_->copy(out, size, offset);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<const std::string> bytes_;
  const size_t size_;
  const std::string path_;
};

class MemoryFileSystem::MemoryLock : public FileLock {
 public:
  MemoryLock(std::shared_ptr<Core> core, size_t node) : core_(std::move(core)), node_(node) {}
  ~MemoryLock() override {
    absl::MutexLock lock(&core_->mutex);
    core_->locked.erase(node_);
  }

 private:
  const std::shared_ptr<Core> core_;
  const size_t node_;
};

MemoryFileSystem::MemoryFileSystem() : MemoryFileSystem(std::make_shared<Core>()) {
  DiskNode root;
  root.folder = true;
  absl::MutexLock lock(&core_->mutex);
  core_->base = core_->nodes = std::make_shared<DiskNodes>(1, root);
}

MemoryFileSystem::MemoryFileSystem(std::shared_ptr<Core> core) : core_(std::move(core)) {}
MemoryFileSystem::~MemoryFileSystem() = default;

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::Create(const FilePath& path) {
  absl::MutexLock lock(&core_->mutex);
  CISTERN_ASSIGN_OR_RETURN(const Core::Place place, core_->Locate(path.text(), "create"));
  if ((*core_->nodes)[place.folder].entries.count(place.leaf) > 0) {
    return ErrnoStatus(EEXIST, "create", path.text());
  }
  DiskOperation operation;
  operation.node = core_->AddNode(false);
  operation.folder = place.folder;
  operation.name = place.leaf;
  operation.text = absl::StrCat("create ", path.text());
  const size_t node = operation.node;
  core_->Do(std::move(operation));
  return std::make_unique<MemoryWritableFile>(core_, node, path.text());
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryFileSystem::Open(const FilePath& path) {
  absl::MutexLock lock(&core_->mutex);
  CISTERN_ASSIGN_OR_RETURN(const Core::Place place, core_->Locate(path.text(), "open"));
  CISTERN_ASSIGN_OR_RETURN(const size_t node, core_->Find(path.text(), "open"));
  if ((*core_->nodes)[node].folder || !(*core_->nodes)[node].link.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path.text(), " is not a regular file"));
  }
  return std::make_unique<MemoryReadableFile>(core_, (*core_->nodes)[node], path.text());
}

absl::Status MemoryFileSystem::MakeFolders(const FilePath& folders) {
  const std::string& path = folders.text();
  absl::MutexLock lock(&core_->mutex);
  const std::vector<std::string> names = absl::StrSplit(path, '/', absl::SkipEmpty());
  size_t folder = 0;
  for (const std::string& name : names) {
    const auto found = (*core_->nodes)[folder].entries.find(name);
    if (found != (*core_->nodes)[folder].entries.end()) {
      folder = found->second;
      if ((*core_->nodes)[folder].folder) continue;
      return ErrnoStatus(ENOTDIR, "create the folder", path);
    }
    DiskOperation make, sync;
    make.node = core_->AddNode(true);
    make.folder = sync.node = folder;
    make.name = name;
    make.text = absl::StrCat("create the folder ", name, " of ", path);
    sync.kind = DiskOperation::kSyncFolder;
    sync.text = absl::StrCat("sync the folder of ", name, " of ", path);
    folder = make.node;
    core_->Do(std::move(make));
    core_->Do(std::move(sync));
  }
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Publish(const FilePath& from, const FilePath& to) {
  return Rename(from, to, false);
}

absl::Status MemoryFileSystem::Replace(const FilePath& from, const FilePath& to) {
  return Rename(from, to, true);
}

absl::Status MemoryFileSystem::Rename(const FilePath& from, const FilePath& to, bool replace) {
  const std::string action = absl::StrCat("rename ", from.text(), " to");
  absl::MutexLock lock(&core_->mutex);
  CISTERN_ASSIGN_OR_RETURN(const Core::Place old_place, core_->Locate(from.text(), action));
  CISTERN_ASSIGN_OR_RETURN(const Core::Place place, core_->Locate(to.text(), action));
  if (old_place.folder != place.folder) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot ", action, " ", to.text(), ", which is in another folder"));
  }
  const auto& entries = (*core_->nodes)[place.folder].entries;
  const auto moved = entries.find(old_place.leaf), taken = entries.find(place.leaf);
  if (moved == entries.end()) return ErrnoStatus(ENOENT, action, to.text());
  if (taken != entries.end()) {
    if (!replace) return ErrnoStatus(EEXIST, action, to.text());
    if (taken->second == moved->second) return absl::OkStatus();
    const DiskNode& gone = (*core_->nodes)[taken->second];
    if (gone.folder != (*core_->nodes)[moved->second].folder) {
      return ErrnoStatus(gone.folder ? EISDIR : ENOTDIR, action, to.text());
    }
    if (!gone.entries.empty()) return ErrnoStatus(ENOTEMPTY, action, to.text());
  }
  DiskOperation operation;
  operation.kind = DiskOperation::kRename;
  operation.folder = place.folder;
  operation.node = moved->second;
  operation.old_name = old_place.leaf;
  operation.name = place.leaf;
  operation.text = absl::StrCat(action, " ", to.text());
  core_->Do(std::move(operation));
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Exchange(const FilePath& a, const FilePath& b) {
  const std::string action = absl::StrCat("exchange ", a.text(), " and");
  absl::MutexLock lock(&core_->mutex);
  CISTERN_ASSIGN_OR_RETURN(const Core::Place one, core_->Locate(a.text(), action));
  CISTERN_ASSIGN_OR_RETURN(const Core::Place other, core_->Locate(b.text(), action));
  CISTERN_CHECK(one.folder == other.folder);  // not supported by this disk
  const auto& entries = (*core_->nodes)[one.folder].entries;
  if (entries.count(one.leaf) == 0 || entries.count(other.leaf) == 0) {
    return ErrnoStatus(ENOENT, action, b.text());
  }
  DiskOperation operation;
  operation.kind = DiskOperation::kExchange;
  operation.folder = one.folder;
  operation.old_name = one.leaf;
  operation.name = other.leaf;
  operation.text = absl::StrCat(action, " ", b.text());
  core_->Do(std::move(operation));
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Remove(const FilePath& path) {
  absl::MutexLock lock(&core_->mutex);
  CISTERN_ASSIGN_OR_RETURN(const Core::Place place, core_->Locate(path.text(), "remove"));
  CISTERN_ASSIGN_OR_RETURN(const size_t node, core_->Find(path.text(), "remove"));
  if (!(*core_->nodes)[node].entries.empty()) {
    return ErrnoStatus(ENOTEMPTY, "remove", path.text());
  }
  DiskOperation operation;
  operation.kind = DiskOperation::kRemove;
  operation.folder = place.folder;
  operation.name = place.leaf;
  operation.text = absl::StrCat("remove ", path.text());
  core_->Do(std::move(operation));
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::SyncFolder(const FilePath& path) {
  absl::MutexLock lock(&core_->mutex);
  DiskOperation operation;
  CISTERN_ASSIGN_OR_RETURN(operation.node, core_->FindFolder(path.text(), "open the folder"));
  operation.kind = DiskOperation::kSyncFolder;
  operation.text = absl::StrCat("sync the folder ", path.text());
  core_->Do(std::move(operation));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> MemoryFileSystem::List(const FilePath& folder) {
  absl::MutexLock lock(&core_->mutex);
  CISTERN_ASSIGN_OR_RETURN(const size_t node, core_->FindFolder(folder.text(), "open the folder"));
  std::vector<std::string> names;
  for (const auto& [name, entry] : (*core_->nodes)[node].entries) names.push_back(name);
  return names;
}

absl::StatusOr<bool> MemoryFileSystem::Exists(const FilePath& path) {
  absl::MutexLock lock(&core_->mutex);
  const absl::StatusOr<size_t> node = core_->Find(path.text(), "stat");
  if (absl::IsNotFound(node.status())) return false;
  CISTERN_RETURN_IF_ERROR(node.status());
  return true;
}

absl::Status MemoryFileSystem::MakeLink(const std::string& target, const FilePath& path) {
  absl::MutexLock lock(&core_->mutex);
  CISTERN_ASSIGN_OR_RETURN(const Core::Place place, core_->Locate(path.text(), "create the link"));
  if ((*core_->nodes)[place.folder].entries.count(place.leaf) > 0) {
    return ErrnoStatus(EEXIST, "create the link", path.text());
  }
  DiskOperation operation;
  operation.node = core_->AddNode(false);
  core_->Changed()[operation.node].link = target;
  operation.folder = place.folder;
  operation.name = place.leaf;
  operation.text = absl::StrCat("link ", path.text(), " to ", target);
  core_->Do(std::move(operation));
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryFileSystem::ReadLink(const FilePath& path) {
  absl::MutexLock lock(&core_->mutex);
  CISTERN_ASSIGN_OR_RETURN(const size_t node, core_->Find(path.text(), "read the link"));
  const std::string& target = (*core_->nodes)[node].link;
  if (target.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path.text(), " is not a symbolic link"));
  }
  return target;
}

absl::StatusOr<std::unique_ptr<FileLock>> MemoryFileSystem::Lock(const FilePath& path) {
  const absl::Status created = Create(path).status();
  if (!absl::IsAlreadyExists(created)) CISTERN_RETURN_IF_ERROR(created);
  absl::MutexLock lock(&core_->mutex);
  CISTERN_ASSIGN_OR_RETURN(const size_t node, core_->Find(path.text(), "lock"));
  if (core_->locked.insert(node).second) return std::make_unique<MemoryLock>(core_, node);
  return absl::FailedPreconditionError(absl::StrCat(path.text(), " is held by another process"));
}

void MemoryFileSystem::Put(const std::string& path, const std::string& bytes) {
  absl::MutexLock lock(&core_->mutex);
  CISTERN_CHECK(core_->log.empty());  // logged operations must not depend on the new file
  auto nodes = std::make_shared<DiskNodes>(*core_->base);
  const std::vector<std::string> names = absl::StrSplit(path, '/', absl::SkipEmpty());
  size_t folder = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    const auto found = (*nodes)[folder].entries.find(names[i]);
    if (!last && found != (*nodes)[folder].entries.end()) {
      folder = found->second;
      CISTERN_CHECK((*nodes)[folder].folder);
      continue;
    }
    DiskNode node;
    node.folder = !last;
    if (last) node.bytes = std::make_shared<std::string>(bytes);
    if (last) node.size = bytes.size();
    (*nodes)[folder].entries[names[i]] = nodes->size();
    folder = nodes->size();
    nodes->push_back(std::move(node));
  }
  core_->base = core_->nodes = nodes;
}

size_t MemoryFileSystem::operation_num() const {
  absl::MutexLock lock(&core_->mutex);
  return core_->log.size();
}

std::string MemoryFileSystem::Operation(size_t index) const {
  absl::MutexLock lock(&core_->mutex);
  return core_->log.at(index).text;
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::Crash(size_t prefix, Loss loss,
                                                          uint64_t seed) const {
  auto nodes = std::make_shared<DiskNodes>();
  {
    absl::MutexLock lock(&core_->mutex);
    CISTERN_CHECK(prefix <= core_->log.size());
    nodes->reserve(core_->nodes->size());
    *nodes = *core_->base;
    for (size_t i = nodes->size(); i < core_->nodes->size(); ++i) {
      DiskNode& node = nodes->emplace_back();
      node.folder = (*core_->nodes)[i].folder;
      node.bytes = (*core_->nodes)[i].bytes;
      node.link = (*core_->nodes)[i].link;
    }
    if (loss == Loss::kKill) ReplayAll(core_->log, prefix, nodes.get());
    if (loss == Loss::kOrdered) ReplayOrdered(core_->log, prefix, seed, nodes.get());
    if (loss == Loss::kWeak) ReplayWeak(core_->log, prefix, seed, nodes.get());
  }
  auto core = std::make_shared<Core>();
  absl::MutexLock lock(&core->mutex);
  core->base = core->nodes = nodes;
  return std::unique_ptr<MemoryFileSystem>(new MemoryFileSystem(core));
}

DiskHash MemoryFileSystem::ContentHash(
    const std::function<bool(const std::string& path)>& looks_into) const {
  absl::MutexLock lock(&core_->mutex);
  return HashOf(*core_->nodes, looks_into);
}

void MemoryFileSystem::IgnoreFileSyncs() {
  absl::MutexLock lock(&core_->mutex);
  core_->ignores_file_syncs = true;
}

void MemoryFileSystem::IgnoreFolderSyncs() {
  absl::MutexLock lock(&core_->mutex);
  core_->ignores_folder_syncs = true;
}

}  // namespace cistern
