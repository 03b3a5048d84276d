// The state that a MemoryFileSystem shares with the files that are open on it.
#pragma once

#include <errno.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"
#include "common/io/file.h"
#include "test/support/disk_log.h"
#include "test/support/memory_file_system.h"

namespace cistern {

// The disk itself, kept alive by open files.
struct MemoryFileSystem::Core {
  // A name in an existing folder; the name itself need not exist.
  struct Place {
    size_t folder = 0;
    std::string leaf;
  };

  absl::Mutex mutex;
  // The same object as `nodes` until the first change, so that a disk that is only read is not
  // copied.
  std::shared_ptr<const DiskNodes> base ABSL_GUARDED_BY(mutex);
  std::shared_ptr<DiskNodes> nodes ABSL_GUARDED_BY(mutex);
  std::vector<DiskOperation> log ABSL_GUARDED_BY(mutex);
  std::set<size_t> locked ABSL_GUARDED_BY(mutex);  // nodes
  bool ignores_file_syncs ABSL_GUARDED_BY(mutex) = false;
  bool ignores_folder_syncs ABSL_GUARDED_BY(mutex) = false;

  DiskNodes& Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (nodes == base) nodes = std::make_shared<DiskNodes>(*base);
    return *nodes;
  }

  void Do(DiskOperation operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const bool ignored = operation.kind == DiskOperation::kSyncFile     ? ignores_file_syncs
                         : operation.kind == DiskOperation::kSyncFolder ? ignores_folder_syncs
                                                                        : false;
    if (ignored) return;
    Apply(operation, &Changed());
    log.push_back(std::move(operation));
  }

  size_t AddNode(bool folder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    DiskNode node;
    node.folder = folder;
    if (!folder) node.bytes = std::make_shared<std::string>();
    Changed().push_back(std::move(node));
    return nodes->size() - 1;
  }

  // A link at the last name is not followed.
  absl::StatusOr<size_t> Find(const std::string& path, absl::string_view action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    size_t node = 0, folder = 0;
    for (const absl::string_view name : absl::StrSplit(path, '/', absl::SkipEmpty())) {
      CISTERN_CHECK(name != "." && name != "..");  // not supported by this disk
      node = Follow(node, folder);
      if (!(*nodes)[node].folder) return NoFolder(node, path, action);
      const auto found = (*nodes)[node].entries.find(std::string(name));
      if (found == (*nodes)[node].entries.end()) {
        return ErrnoStatus(ENOENT, action, path);
      }
      folder = node;
      node = found->second;
    }
    return node;
  }

  // The error of a file, or of a link to nothing, in the place of a folder.
  absl::Status NoFolder(size_t node, const std::string& path, absl::string_view action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return ErrnoStatus((*nodes)[node].link.empty() ? ENOTDIR : ENOENT, action, path);
  }

  // Resolves a link: what `node` in `folder` points to, or `node` itself.
  size_t Follow(size_t node, size_t folder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const std::string& target = (*nodes)[node].link;
    if (target.empty()) return node;
    CISTERN_CHECK(target.find('/') == std::string::npos);  // not supported by this disk
    const auto found = (*nodes)[folder].entries.find(target);
    return found == (*nodes)[folder].entries.end() ? node : found->second;
  }

  absl::StatusOr<size_t> FindFolder(const std::string& path, absl::string_view action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    CISTERN_ASSIGN_OR_RETURN(size_t node, Find(path, action));
    if (!(*nodes)[node].link.empty()) {
      CISTERN_ASSIGN_OR_RETURN(const size_t folder, Find(ParentFolder(path), action));
      node = Follow(node, folder);
    }
    if ((*nodes)[node].folder) return node;
    return NoFolder(node, path, action);
  }

  absl::StatusOr<Place> Locate(const std::string& path, absl::string_view action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const size_t slash = path.rfind('/');
    Place place;
    place.leaf = slash == std::string::npos ? path : path.substr(slash + 1);
    if (place.leaf.empty() || place.leaf == "." || place.leaf == "..") {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "' does not end with a file name"));
    }
    CISTERN_ASSIGN_OR_RETURN(
        place.folder, FindFolder(slash == std::string::npos ? "" : path.substr(0, slash), action));
    return place;
  }
};

}  // namespace cistern
