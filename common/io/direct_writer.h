// Writes a new file past the page cache: bytes go straight from the writer's own buffers to the
// disk, so they neither need free pages nor evict cached ones.
//
// A checkpoint is written once, and read after a restart or never. If memory is scarce, or the host
// of a virtual machine has reclaimed free pages, copies in the page cache cost several times as
// much as the disk writes.
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

// A background thread writes each whole piece of kPieceBytes past the cache while the next piece is
// filled. File systems without O_DIRECT (tmpfs, some FUSE ones) get plain writes. Flush writes the
// rest. A file smaller than one piece is written like any other file.
//
// Appended bytes may stay in the buffers until Flush. Errors are those of common/io/file.h; the
// error of a piece is returned by a later call. After the first error the caller must stop.
//
// Threads: one at a time.
class DirectWriter {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 20;

  // fd: open for writing, positioned at its start; outlives this. path: for error messages.
  DirectWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  absl::Status Append(absl::string_view bytes);
  // Hands all bytes to the operating system; they are not yet durable on return. Later appends are
  // written through the cache before Append returns.
  absl::Status Flush();

 private:
  // Starts the write of the piece in filling_ on the thread, after the previous write is done.
  absl::Status HandOver();
  // Waits for the thread and returns the status of its write.
  absl::Status Await();
  // In direct mode `bytes` must be in one of the aligned buffers.
  absl::Status Write(absl::string_view bytes);
  // Starts writing the cached bytes to the disk.
  void StartWriteback(size_t more);
  absl::Status EndDirect();

  const int fd_;
  const std::string path_;
  bool cached_ = false;    // after Flush: writes go through the cache, without buffers
  AlignedBuffer filling_;  // [kPieceBytes], allocated by the first Append
  size_t filled_ = 0;      // bytes in filling_
  // Owned by the thread while busy_.
  AlignedBuffer writing_;
  bool direct_ = false;                // the mode of the descriptor
  int64_t written_ = 0, started_ = 0;  // bytes written to the cache; of these, write-back started
  absl::Status result_;

  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<ThreadPool> thread_;  // from the first whole piece on; last: uses other members
};

}  // namespace cistern
