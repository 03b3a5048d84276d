// A disk in memory that remembers what was done to it, so that a test can take the power away after
// any call and look at what is left.
//
// What a loss of power leaves is what common/io/file_system.h promises and nothing more: bytes of a
// file up to its last Sync, names of a folder up to its last SyncFolder. What comes on top of that
// depends on the disk:
//
//   kKill     everything: only the process died
//   kOrdered  some first part of what was not synced, in the order in which it was done; its last
//             bytes may be cut anywhere
//   kWeak     any part of it: each name by itself (a rename may leave both of its names); the bytes
//             of a file dropped, cut anywhere, zeros in the place of any rest of them, or all there
//
// Of kWeak the first seeds are the extremes: 0 nothing, 1 all names and no bytes, 2 all bytes and
// no names, 3 all names and zeros for bytes. Every further seed draws.
//
// Bytes that WriteAt replaced are gone at once, whatever a crash leaves: nothing that must survive
// one is written so.
//
// Files, folders and locks only: no links, no permissions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/io/file_system.h"
#include "test/support/disk_log.h"

namespace cistern {

// Threads: any thread.
class MemoryFileSystem : public FileSystem {
 public:
  enum class Loss { kKill, kOrdered, kWeak };

  MemoryFileSystem();
  ~MemoryFileSystem() override;

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override;
  absl::Status MakeFolders(const std::string& path) override;
  absl::Status Publish(const std::string& from, const std::string& to) override;
  absl::Status Replace(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

  // Puts a whole file there, in place of an older one, as if it had always been: not recorded. Its
  // folders are made.
  void Put(const std::string& path, const std::string& bytes);

  // Calls that changed or synced something since this disk exists, and what each of them was.
  size_t operation_num() const;
  std::string Operation(size_t index) const;

  // The disk that is found after the first `prefix` operations and a crash. The same arguments give
  // the same disk. It has no operations yet and nobody holds its locks; this one stays as it is.
  std::unique_ptr<MemoryFileSystem> Crash(size_t prefix, Loss loss, uint64_t seed) const;

  // The same for two disks that nobody can tell apart who reads no file but those for whose path
  // looks_into(path) is true (but for chance: 128 bits).
  DiskHash ContentHash(const std::function<bool(const std::string& path)>& looks_into) const;

  // From now on these calls do nothing and say that they did: tests show with them that a test of
  // crashes would see a sync that is missing.
  void IgnoreFileSyncs();
  void IgnoreFolderSyncs();

 private:
  struct Core;
  class MemoryWritableFile;
  class MemoryReadableFile;
  class MemoryLock;
  explicit MemoryFileSystem(std::shared_ptr<Core> core);
  absl::Status Rename(const std::string& from, const std::string& to, bool replace);

  const std::shared_ptr<Core> core_;
};

}  // namespace cistern
