// What was done to a disk, and what a crash leaves of it: the arithmetic of MemoryFileSystem.
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

// A file or a folder, by its position in DiskNodes. Files only grow, and a file that was there when
// the log began never changes: all disks that a crash left share its bytes.
struct DiskNode {
  bool folder = false;
  std::map<std::string, size_t> entries;  // folder
  std::shared_ptr<std::string> bytes;     // file; the first `size` of them are its own
  size_t size = 0;
};
using DiskNodes = std::vector<DiskNode>;  // 0: the root folder

struct DiskOperation {
  enum Kind {
    kName,        // `name` in `folder` is `node` now
    kRename,      // the same, and `old_name` is gone
    kRemove,      // `name` in `folder` is gone
    kAppend,      // file `node` has `size` bytes now
    kSyncFile,    // file `node`
    kSyncFolder,  // folder `node`
  };
  Kind kind = kName;
  size_t folder = 0, node = 0, size = 0;
  std::string name, old_name;
  std::string text;  // for people
};

// 128 bits that differ, but for chance, where any name that can be found on a disk does, or any
// byte of a file that has one and for whose path `looks_into` says so.
using DiskHash = std::array<uint64_t, 2>;
DiskHash HashOf(const DiskNodes& nodes,
                const std::function<bool(const std::string& path)>& looks_into);

// Numbers that follow from a seed alone (splitmix64).
class SeededNumbers {
 public:
  explicit SeededNumbers(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t bound);  // 0 .. bound - 1

 private:
  uint64_t state_;
};

// Does one operation; a sync does nothing here.
void Apply(const DiskOperation& operation, DiskNodes* nodes);

// Each takes the disk as it was when the log began, with all nodes that exist now, and carries out
// the first `prefix` operations of `log` as far as they survive.
void ReplayAll(const std::vector<DiskOperation>& log, size_t prefix, DiskNodes* nodes);
void ReplayOrdered(const std::vector<DiskOperation>& log, size_t prefix, uint64_t seed,
                   DiskNodes* nodes);
void ReplayWeak(const std::vector<DiskOperation>& log, size_t prefix, uint64_t seed,
                DiskNodes* nodes);

}  // namespace cistern
