// The names under which a traced call and its answer say so (common/trace/trace_file.h), in gRPC's
// metadata. A call without an id is not traced, and its answer does not tell how long it took.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace cistern {

inline constexpr char kTraceIdName[] = "cistern-trace";
inline constexpr char kHandledName[] = "cistern-handled-us";
// Longer ones are ignored, and so are those with other bytes than printable ASCII.
inline constexpr size_t kMaxTraceIdBytes = 128;

// The id of a call in its caller's trace; empty: it is not traced.
inline std::string TraceIdOf(const grpc::ServerContextBase& context) {
  const auto found = context.client_metadata().find(kTraceIdName);
  if (found == context.client_metadata().end()) return "";
  const absl::string_view id(found->second.data(), found->second.size());
  if (id.size() > kMaxTraceIdBytes) return "";
  for (const char c : id) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) return "";
  }
  return std::string(id);
}

// How long the server says that it took for a call; not set: it does not say, or no number.
inline std::optional<absl::Duration> HandledTimeOf(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(kHandledName);
  uint64_t microseconds = 0;
  if (found == metadata.end() ||
      !absl::SimpleAtoi(absl::string_view(found->second.data(), found->second.size()),
                        &microseconds)) {
    return std::nullopt;
  }
  constexpr uint64_t kDay = uint64_t{86'400} * 1'000'000;
  return absl::Microseconds(static_cast<int64_t>(std::min(microseconds, kDay)));
}

}  // namespace cistern
