#include "server/service/server_counters.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace cistern::server {

const char* NameOf(ServerMethod method) {
  static constexpr const char* kNames[] = {
#define CISTERN_METHOD(name, request, reply, length, effect, role) #name,
      CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD
          "Pull",
      "Push", "PullDense", "PushDense", "Scan"};
  static_assert(std::size(kNames) == kServerMethodNum);
  return kNames[static_cast<size_t>(method)];
}

ServerMethod MethodOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::kPull:
      return ServerMethod::kPull;
    case FrameKind::kPush:
      return ServerMethod::kPush;
    case FrameKind::kPullDense:
      return ServerMethod::kPullDense;
    case FrameKind::kPushDense:
      return ServerMethod::kPushDense;
    case FrameKind::kScan:
      break;
  }
  return ServerMethod::kScan;
}

size_t ServerCounters::IndexOf(absl::StatusCode code) {
  return std::min<size_t>(static_cast<size_t>(code), kCodes - 1);
}

void ServerCounters::CountCall(ServerMethod method, const absl::Status& status,
                               absl::Duration took) {
  seconds_[static_cast<size_t>(method)].Add(took);
  if (!status.ok()) CountRefusal(status);
}

void ServerCounters::CountRefusal(const absl::Status& status) {
  errors_[IndexOf(status.code())].fetch_add(1, std::memory_order_relaxed);
}

void ServerCounters::CountPull(uint64_t keys, uint64_t bytes) {
  pulled_keys_.fetch_add(keys, std::memory_order_relaxed);
  pulled_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void ServerCounters::CountPush(uint64_t keys, uint64_t bytes) {
  pushed_keys_.fetch_add(keys, std::memory_order_relaxed);
  pushed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void ServerCounters::CountCommit() {
  commits_.fetch_add(1, std::memory_order_relaxed);
  last_commit_ms_.store(static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())),
                        std::memory_order_relaxed);
}

}  // namespace cistern::server
