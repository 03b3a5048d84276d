// A disk in memory that logs its operations, so that a test can simulate a loss of power after any
// call and inspect what is left.
//
// A loss of power preserves exactly what common/io/file_system.h promises: the bytes of a file up
// to its last Sync, and the names in a folder up to its last SyncFolder. What else survives depends
// on the kind of loss:
//
//   kKill     everything: only the process died
//   kOrdered  the first unsynced operations, in order; the last one may survive in part, cut at any
//             byte
//   kWeak     any subset: each name independently (a rename may leave both names); the unsynced
//             bytes of a file may be dropped, truncated at any byte, replaced by zeros from any
//             byte on, or complete
//
// For kWeak the first seeds are the extremes: 0 nothing, 1 all names and no bytes, 2 all bytes and
// no names, 3 all names and zeros for bytes. Every further seed draws at random.
//
// WriteAt replaces bytes at once, even in the disks of earlier crash points: nothing that must
// survive a crash is written with it.
//
// Supports files, folders, locks and symbolic links; of the links within a path, those to a name in
// their own folder. No permissions.
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

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const FilePath& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const FilePath& path) override;
  absl::Status MakeFolders(const FilePath& path) override;
  absl::Status Publish(const FilePath& from, const FilePath& to) override;
  absl::Status Replace(const FilePath& from, const FilePath& to) override;
  absl::Status Exchange(const FilePath& a, const FilePath& b) override;
  absl::Status Remove(const FilePath& path) override;
  absl::Status SyncFolder(const FilePath& path) override;
  absl::StatusOr<std::vector<std::string>> List(const FilePath& folder) override;
  absl::StatusOr<bool> Exists(const FilePath& path) override;
  absl::Status MakeLink(const std::string& target, const FilePath& path) override;
  absl::StatusOr<std::string> ReadLink(const FilePath& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const FilePath& path) override;

  // Creates or replaces a whole file, and creates its folders, as if it had always been there: the
  // change is not logged.
  void Put(const std::string& path, const std::string& bytes);

  // The number of logged operations (calls that changed or synced something), and a description of
  // each.
  size_t operation_num() const;
  std::string Operation(size_t index) const;

  // Returns the disk left by a crash after the first `prefix` operations. The same arguments return
  // the same disk. Its log is empty and its locks are free. This disk does not change.
  std::unique_ptr<MemoryFileSystem> Crash(size_t prefix, Loss loss, uint64_t seed) const;

  // A 128-bit hash of all names, and of the bytes of the files for whose path looks_into(path) is
  // true. Disks that differ only in other files have the same hash.
  DiskHash ContentHash(const std::function<bool(const std::string& path)>& looks_into) const;

  // From now on syncs of files, or of folders, return OK without doing anything. With these a test
  // shows that the crash tests would detect a missing sync.
  void IgnoreFileSyncs();
  void IgnoreFolderSyncs();

 private:
  struct Core;
  class MemoryWritableFile;
  class MemoryReadableFile;
  class MemoryLock;
  explicit MemoryFileSystem(std::shared_ptr<Core> core);
  absl::Status Rename(const FilePath& from, const FilePath& to, bool replace);

  const std::shared_ptr<Core> core_;
};

}  // namespace cistern
