#include "test/fuzz/watch_targets.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/rpc/stream_watch.h"

namespace cistern {
namespace {

constexpr size_t kPrefaceBytes = 24, kHeadBytes = 9;
constexpr uint8_t kHeaders = 1, kContinuation = 9;

size_t Number(absl::string_view bytes) {
  size_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

// Whether a block of headers in these bytes of a client exceeds the limits, by RFC 9113's frames.
bool HasLongHeaders(absl::string_view client) {
  if (client.size() < kPrefaceBytes) return false;
  client.remove_prefix(kPrefaceBytes);
  size_t block = 0;
  int continuations = 0;
  while (client.size() >= kHeadBytes) {
    const size_t length = Number(client.substr(0, 3));
    const auto type = static_cast<uint8_t>(client[3]);
    if (type == kHeaders) block = continuations = 0;
    if (type == kContinuation) ++continuations;
    if (type == kHeaders || type == kContinuation) {
      block += length;
      if (block > StreamWatch::kMaxHeaderBytes || continuations > StreamWatch::kMaxContinuations) {
        return true;
      }
    }
    client.remove_prefix(std::min(client.size(), kHeadBytes + length));
  }
  return false;
}

// What the frames of so many bytes can make a watch count, at most.
uint64_t MostHeld(size_t client_bytes) {
  const uint64_t frames = client_bytes / kHeadBytes + 1;
  return frames * (uint64_t{StreamWatch::kMaxHeaderBytes} * 160 + (16u << 10));
}

// The two watches count canceled calls at different times, which forgives some of them.
bool IsOfTime(const absl::Status& status) {
  return absl::StrContains(status.message(), "cancels");
}

absl::Status OneByOne(StreamWatch& watch, absl::string_view piece) {
  absl::Status status = watch.FromClient("");
  for (const char& byte : piece) status = watch.FromClient({&byte, 1});
  return status;
}

void RunStreamWatch(absl::string_view bytes) {
  if (bytes.empty()) return;
  const auto max_streams = static_cast<uint8_t>(bytes[0]);
  bytes.remove_prefix(1);
  StreamWatch watch(max_streams), single(max_streams);
  std::string client;
  while (bytes.size() >= 3) {
    const bool from_server = (bytes[0] & 1) != 0;
    const absl::string_view piece = bytes.substr(3, Number(bytes.substr(1, 2)));
    bytes.remove_prefix(3 + piece.size());
    if (from_server) {
      watch.FromServer(piece);
      for (const char& byte : piece) single.FromServer({&byte, 1});
    } else {
      client.append(piece.data(), piece.size());
      const absl::Status status = watch.FromClient(piece);
      const absl::Status other = OneByOne(single, piece);
      if (IsOfTime(status) || IsOfTime(other)) return;
      CISTERN_CHECK(status == other);
    }
    CISTERN_CHECK(watch.held_bytes() <= MostHeld(client.size()));
    if (!watch.status().ok()) break;
  }
  const absl::Status status = watch.status();
  CISTERN_CHECK(watch.FromClient("more") == status || status.ok());
  const bool is_http = !absl::IsInvalidArgument(status);
  const bool of_headers = absl::StrContains(status.message(), "the headers of a call");
  if (of_headers) CISTERN_CHECK(HasLongHeaders(client));
  if (is_http && status.ok()) CISTERN_CHECK(!HasLongHeaders(client));
}

}  // namespace

const std::vector<FuzzTarget>& WatchTargets() {
  static const std::vector<FuzzTarget> targets = {{"stream_watch", RunStreamWatch}};
  return targets;
}

}  // namespace cistern
