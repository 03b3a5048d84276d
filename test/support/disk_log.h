// The log of operations on a disk, and the computation of what a crash leaves of it. Used by
// MemoryFileSystem.
//
// Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cistern {

// A file, a folder or a symbolic link, identified by its index in DiskNodes. Files only grow, and a
// file that existed when the log began never changes, so all disks computed for crashes share its
// bytes.
struct DiskNode {
  bool folder = false;
  std::map<std::string, size_t> entries;  // folder
  std::shared_ptr<std::string> bytes;     // file; only the first `size` bytes belong to it
  size_t size = 0;
  std::string link;  // the target of a link
};
using DiskNodes = std::vector<DiskNode>;  // 0: the root folder

struct DiskOperation {
  enum Kind {
    kName,        // `name` in `folder` now refers to `node`
    kRename,      // the same, and `old_name` is removed
    kExchange,    // `name` and `old_name` have swapped their nodes
    kRemove,      // `name` is removed from `folder`
    kAppend,      // file `node` now has `size` bytes
    kSyncFile,    // file `node`
    kSyncFolder,  // folder `node`
  };
  Kind kind = kName;
  size_t folder = 0, node = 0, size = 0;
  std::string name, old_name;
  std::string text;  // a readable description
};

// A 128-bit hash of all names on a disk, and of the bytes of each named file for whose path
// `looks_into` returns true.
using DiskHash = std::array<uint64_t, 2>;
DiskHash HashOf(const DiskNodes& nodes,
                const std::function<bool(const std::string& path)>& looks_into);

// Random numbers that depend only on a seed (splitmix64).
class SeededNumbers {
 public:
  explicit SeededNumbers(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t bound);  // 0 .. bound - 1

 private:
  uint64_t state_;
};

// Applies one operation; a sync has no effect.
void Apply(const DiskOperation& operation, DiskNodes* nodes);

// Each takes the disk as of the beginning of the log, with all nodes that exist now, and applies
// those of the first `prefix` operations of `log` that survive.
void ReplayAll(const std::vector<DiskOperation>& log, size_t prefix, DiskNodes* nodes);
void ReplayOrdered(const std::vector<DiskOperation>& log, size_t prefix, uint64_t seed,
                   DiskNodes* nodes);
void ReplayWeak(const std::vector<DiskOperation>& log, size_t prefix, uint64_t seed,
                DiskNodes* nodes);

}  // namespace cistern
