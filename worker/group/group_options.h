// The ranks of a process group, their rendezvous address and their shared secret.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "common/base/status.h"
#include "worker/group/socket.h"

namespace cistern::group {

// The shared secret of a process group. A connection that does not present it comes from a stranger
// (reception.h). Rank 0 draws a new one (common/base/secret.h) for each group.
struct GroupSecret {
  uint64_t value = 0;  // not 0; ignored on a rank that has `fetch`
  // Rank 0: publishes the value for ranks that do not know it. Called once this process listens,
  // then every second until all ranks have joined, because a published value may be lost. Null: the
  // other ranks know the value.
  std::function<absl::Status(uint64_t value)> leave = nullptr;
  // Other ranks: fetches the published value before each attempt. kNotFound, with advice, until
  // rank 0 has published it. Null: use `value`.
  std::function<absl::StatusOr<uint64_t>()> fetch = nullptr;
};

// One of `size` processes with ranks 0 .. size - 1. Rank 0 listens at an address that all ranks
// know. The others connect there and receive the listening address of every rank, without MPI or a
// shared folder.
struct GroupOptions {
  int rank = 0, size = 1;
  std::string address;  // "host:port" of rank 0; ignored if size is 1
  GroupSecret secret;   // ignored if size is 1
  // The time limits of the rendezvous, and of a call that waits for another live rank. (The end of
  // a rank's process is noticed at once.)
  std::chrono::milliseconds gather_limit{60000};
  std::chrono::milliseconds deadline{60000};
  // Set by a signal handler: ends the rendezvous (kCancelled). May be null.
  const std::atomic<bool>* interrupted = nullptr;
  // Certificates of all connections of the group; null: plain text.
  std::shared_ptr<const SecureContext> tls = nullptr;
  // Rank 0: its listener, if already open (on a port that the system chose).
  Listener listener;
};

}  // namespace cistern::group
