// Logs the calls that a server refuses: the caller, the call and the reason. A caller can cause
// only a few lines per second, of plain text.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/status.h"

namespace cistern::server {

// Threads: any thread.
class RefusalLog {
 public:
  static constexpr int kLines = 20;  // per kWindow; the rest is only counted
  static constexpr absl::Duration kWindow = absl::Seconds(10);

  // Logs the error `status` of a call of `method` by CallPeer::Current(), if that is another
  // process. An error that the caller may retry (kUnavailable), or that reports something not found
  // (kNotFound), is not a refusal.
  void Note(absl::string_view method, const absl::Status& status);

  uint64_t refused() const;  // since the start, logged or not

 private:
  // Whether one more line may be written; sets *left_out to the number of lines left out before it.
  bool MayWrite(uint64_t* left_out);

  mutable absl::Mutex mutex_;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0, left_out_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time window_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // its start
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;                             // in the window
};

}  // namespace cistern::server
