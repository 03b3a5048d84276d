// The server's log of calls that it has refused: who called, what, and why. A caller can make it
// write no more than a few lines a second, of plain text.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/status.h"

namespace cistern {

// Threads: any thread.
class RefusalLog {
 public:
  static constexpr int kLines = 20;  // in any kWindow; of the rest the number is logged
  static constexpr absl::Duration kWindow = absl::Seconds(10);

  // Logs `status`, not OK, of a call of `method`, made by CallPeer::Current(), another process.
  // What a caller may simply try again (kUnavailable), or ask for and not find (kNotFound), is no
  // refusal.
  void Note(absl::string_view method, const absl::Status& status);

  uint64_t refused() const;  // since the start, logged or not

 private:
  // Whether one more line may be written; how many were not, before it.
  bool MayWrite(uint64_t* left_out);

  mutable absl::Mutex mutex_;
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0, left_out_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time window_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // its begin
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;                             // in it
};

}  // namespace cistern
