// A file system whose calls fail on request of a test.
//
// Every call is counted, starting at 1, including reads and each Append, Sync and Close of an open
// file. To let every call of a piece of code fail once, run it with FailCall(1), FailCall(2) ...
// until a run has no hit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/io/file_system.h"

namespace cistern {

enum class Fault {
  kNoSpace,      // ENOSPC: kResourceExhausted
  kInputOutput,  // EIO: kInternal
  kShortWrite,   // an Append writes half of its bytes, then fails with ENOSPC; other calls: EIO
  kLostReply,    // the call takes effect, but returns EIO (NFS)
};

// Threads: any thread.
class FaultFileSystem : public FileSystem {
 public:
  // files: executes the calls that do not fail; outlives this.
  explicit FaultFileSystem(FileSystem* files);
  ~FaultFileSystem() override;

  // Restarts the count at 1, forgets all hits, and fails the calls `first` .. `first + times - 1`.
  void FailCall(uint64_t first, Fault fault, uint64_t times = 1);
  // Restarts the count at 1, forgets all hits, and fails each call with probability 1 / one_in,
  // drawn from the seed.
  void FailSome(uint64_t seed, uint64_t one_in, Fault fault);
  void FailNothing() { FailCall(0, Fault::kInputOutput, 0); }

  uint64_t calls() const;
  // The calls that have failed since then, as text: "append 512 bytes to data/x".
  std::vector<std::string> hits() const;

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

 private:
  class Plan;
  class FaultWritableFile;
  class FaultReadableFile;

  FileSystem* const files_;
  const std::shared_ptr<Plan> plan_;
};

}  // namespace cistern
