// Writes a new file past the page cache: bytes go from a buffer of their own to the disk, so that
// they take no memory that the machine would first have to find, and push nothing out of it.
//
// A checkpoint is written once, and read after a restart or never. Where memory is scarce, or the
// host of a virtual machine has taken free pages back, copies in the page cache cost several times
// what the disk does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/aligned_buffer.h"
#include "common/base/status.h"
#include "common/base/thread_pool.h"

namespace cistern {

// Whole pieces of kPieceBytes go past the cache, where the file system can do that (tmpfs and some
// of FUSE cannot: those get plain writes), each by a thread of its own while the next one is
// filled; what is left at Flush is written then. A file that is smaller than a piece is written as
// any other.
//
// What was appended may be in the buffers until Flush. Errors are those of common/io/file.h, and
// come from any later call: the caller makes none after the first.
//
// Threads: one at a time.
class DirectWriter {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  // fd: open for writing, at its start, and longer than this. path: for errors.
  DirectWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  absl::Status Append(absl::string_view bytes);
  // The system has everything on return; the disk does not. Later bytes go through the cache, each
  // before Append returns.
  absl::Status Flush();

 private:
  // Has the thread write the piece in filling_, once it has written the one before.
  absl::Status HandOver();
  // Waits for the thread; what became of its piece.
  absl::Status Await();
  // In direct mode bytes lie in a buffer.
  absl::Status Write(absl::string_view bytes);
  // Has the disk begin with what is in the cache.
  void StartWriteback(size_t more);
  absl::Status EndDirect();

  const int fd_;
  const std::string path_;
  bool cached_ = false;    // no buffers any more
  AlignedBuffer filling_;  // of kPieceBytes, from the first Append on
  size_t filled_ = 0;      // bytes in it
  // The thread's while busy_.
  AlignedBuffer writing_;
  bool direct_ = false;                // the mode of the descriptor
  int64_t written_ = 0, started_ = 0;  // bytes that the cache got; and that are on their way
  absl::Status result_;

  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ThreadPool> thread_;  // from the first whole piece on; last: it uses the others
};

}  // namespace cistern
