// What a server counts while it works: calls, rows, errors and commits.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/metrics/duration_histogram.h"
#include "common/wire/control_methods.h"
#include "common/wire/frame.h"

namespace cistern::server {

// The calls of both planes.
enum class ServerMethod : uint8_t {
#define CISTERN_METHOD(name, request, reply, length, effect, role) k##name,
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD
      kPull,
  kPush,
  kPullDense,
  kPushDense,
  kScan,
};
inline constexpr size_t kServerMethodNum = static_cast<size_t>(ServerMethod::kScan) + 1;

// "Hello", "Pull" ...
const char* NameOf(ServerMethod method);
ServerMethod MethodOf(FrameKind kind);

// HOT PATH: Every pulled and pushed frame counts here, some atomic additions each.
//
// Threads: any thread.
class ServerCounters {
 public:
  static constexpr size_t kCodes = 17;  // of absl::StatusCode; those above count as the last one

  // A call was answered. took: in its handler, without the socket and without waiting for a thread.
  void CountCall(ServerMethod method, const absl::Status& status, absl::Duration took);
  // A call was refused before it reached a handler.
  void CountRefusal(const absl::Status& status);
  // Rows of a pull or push that succeeded. bytes: of keys and values, without headers.
  void CountPull(uint64_t keys, uint64_t bytes);
  void CountPush(uint64_t keys, uint64_t bytes);
  // A pass was committed, now.
  void CountCommit();

  uint64_t pulled_keys() const { return Read(pulled_keys_); }
  uint64_t pushed_keys() const { return Read(pushed_keys_); }
  uint64_t pulled_bytes() const { return Read(pulled_bytes_); }
  uint64_t pushed_bytes() const { return Read(pushed_bytes_); }
  uint64_t commits() const { return Read(commits_); }
  // Unix time of the last commit, in seconds; 0: none since the start.
  double last_commit_seconds() const { return static_cast<double>(Read(last_commit_ms_)) * 1e-3; }
  // Calls that returned the error `code`, which is not kOk.
  uint64_t errors(absl::StatusCode code) const { return Read(errors_[IndexOf(code)]); }
  const DurationHistogram& seconds(ServerMethod method) const {
    return seconds_[static_cast<size_t>(method)];
  }

 private:
  using Counter = std::atomic<uint64_t>;
  static uint64_t Read(const Counter& counter) { return counter.load(std::memory_order_relaxed); }
  static size_t IndexOf(absl::StatusCode code);

  std::array<DurationHistogram, kServerMethodNum> seconds_;
  std::array<Counter, kCodes> errors_{};
  Counter pulled_keys_{0}, pushed_keys_{0}, pulled_bytes_{0}, pushed_bytes_{0};
  Counter commits_{0}, last_commit_ms_{0};
};

}  // namespace cistern::server
