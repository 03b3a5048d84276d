// Which processes compute together, and how they find each other.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "cuda/collective/socket.h"

namespace cistern {

// One of `size` processes with ranks 0 .. size - 1. Rank 0 listens at an address that all know;
// the others come there, and are told where each of them listens (no MPI, no shared folder).
struct PeerGroup {
  int rank = 0, size = 1;
  std::string address;  // "host:port" of rank 0; not read where size is 1
  std::string run;      // the same for all: a process of another run is turned away
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
