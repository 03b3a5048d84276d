// Which processes compute together, and how they find each other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "common/base/status.h"
#include "worker/group/socket.h"

namespace cistern {

// What the processes of a group know and nobody else does: a connection that does not show it is a
// stranger's (reception.h). Rank 0 draws it (common/base/secret.h) for each group anew.
struct GroupSecret {
  uint64_t value = 0;  // not 0; of a rank that has `fetch`: not read
  // Rank 0, where the others do not know the value: leaves it for them. Called once this process
  // listens, and every second until all have come: what was left may be lost. Null: they know it.
  std::function<absl::Status(uint64_t value)> leave = nullptr;
  // The others: what rank 0 has left, asked for before each try. kNotFound, with what to do, while
  // it has left nothing. Null: `value` is right.
  std::function<absl::StatusOr<uint64_t>()> fetch = nullptr;
};

// One of `size` processes with ranks 0 .. size - 1. Rank 0 listens at an address that all know;
// the others come there, and are told where each of them listens (no MPI, no shared folder).
struct GroupOptions {
  int rank = 0, size = 1;
  std::string address;  // "host:port" of rank 0; not read where size is 1
  GroupSecret secret;   // not read where size is 1
  // The longest that all may take to come, and that a call waits for a peer that is there. (One
  // that ends is noticed at once.)
  std::chrono::milliseconds gather_limit{60000};
  std::chrono::milliseconds deadline{60000};
  // Set by a signal handler: who gathers waits no longer (kCancelled). May be null.
  const std::atomic<bool>* interrupted = nullptr;
  // Rank 0: where it listens, if that was opened before (a port of the system's choice).
  Listener listener;
};

}  // namespace cistern
