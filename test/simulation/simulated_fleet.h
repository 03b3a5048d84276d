// Durable servers of one fleet, in this process, on one disk that can lose power, behind a network
// that loses, repeats and keeps messages.
//
// Servers and clients are the ones that run in production; what stands in for the world is below
// them (the disk: test/support/memory_file_system.h) and between them (Link).
//
// Faults are drawn from the seed, for each link by itself: the same seed gives every link the same
// faults. Which of two servers is asked first is up to the threads of the client.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "server/checkpoint/state_folder.h"
#include "server/service/server_node.h"
#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"

namespace cistern {

// What happens to one call, each in so many of 10,000.
struct FaultRates {
  int request_lost = 0;  // the server never sees it
  int reply_lost = 0;    // the server has acted
  int twice = 0;         // the server acts twice; the second answer counts
  int late = 0;          // a copy is kept and arrives at any later time; half of the originals are
                         // lost
  int killed = 0;        // the server dies before, during (at some call to its disk) or after it
  int meanwhile = 0;     // something else happens first: SimulatedFleet::meanwhile
  int partition = 0;     // this and the next calls of the link are refused

  static FaultRates Of(int per_ten_thousand);
};

// How often each of them has happened.
struct FaultCounts {
  std::atomic<uint64_t> calls{0}, lost{0}, twice{0}, late{0}, kills{0}, partitions{0}, outages{0};
};

class SimulatedLink;

// Threads: any thread. What `meanwhile` does may call anything here.
class SimulatedFleet {
 public:
  using Act = std::function<absl::Status(ServerNode&)>;

  // Durable servers on an empty disk; `base` gives the rest.
  SimulatedFleet(uint32_t server_num, const ServerOptions& base, FaultCounts* counts);
  ~SimulatedFleet();

  size_t size() const { return machines_.size(); }
  bool IsUp(size_t rank);
  // Memory is gone; the disk stays. Waits for the calls that are in it.
  void Kill(size_t rank);
  // A server that is up stays as it is.
  absl::Status Start(size_t rank);
  absl::Status StartAll();
  // All servers are gone, and of the disk what was not synced, as the seed says.
  void LosePower(uint64_t seed);
  // From its `call`-th call on, the disk does nothing for this server: it dies there.
  void StopDiskAt(size_t rank, uint64_t call);

  // A call as it arrives at a server; kUnavailable if it is down.
  absl::Status Arrive(size_t rank, const Act& act);

  void KeepLate(size_t rank, Act act);
  size_t late_num();
  // One of the kept messages arrives now; nothing if there is none.
  void DeliverLate(uint64_t draw);

  // What else may happen while a call is on its way; one at a time.
  std::function<void()> meanwhile;
  void Meanwhile();

  MemoryFileSystem& disk() { return *disk_; }
  // The claim of an epoch that is on disk.
  EpochClaim ClaimOf(Epoch epoch);
  FaultCounts& counts() { return *counts_; }

 private:
  struct Machine {
    absl::Mutex mutex;  // shared by the calls that are in the server
    std::unique_ptr<FaultFileSystem> files;
    std::unique_ptr<ServerNode> node;
    std::atomic<bool> dying{false};  // its disk stops at some call, and the process with it
  };

  ServerOptions base_;
  FaultCounts* const counts_;
  std::unique_ptr<MemoryFileSystem> disk_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::atomic<bool> in_meanwhile_{false};

  absl::Mutex late_mutex_;
  std::deque<std::pair<size_t, Act>> late_ ABSL_GUARDED_BY(late_mutex_);
};

// The way from one client to one server.
//
// Threads: any thread.
class SimulatedLink : public ControlPlane, public DataPlane {
 public:
  SimulatedLink(SimulatedFleet* fleet, size_t rank, uint64_t seed, const FaultRates& rates);

  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override;
#define CISTERN_METHOD(name, request, reply, length) \
  absl::Status name(const v1::request& in, v1::reply* out) override;
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

  void StopFaults() {
    faulty_ = false;
  }
  // Every message says that it is of the writer whose epoch the server is at: the fence is off.
  void PassFence() {
    passes_fence_ = true;
  }

 private:
  struct Fate {
    bool request_lost = false, reply_lost = false, twice = false, late = false, meanwhile = false;
    enum { kLives, kBefore, kDuring, kAfter } death = kLives;
    uint64_t disk_call = 0;
  };
  Fate Draw();
  // late: what a kept copy does.
  absl::Status Send(const SimulatedFleet::Act& act, const SimulatedFleet::Act& late);
  template <class In, class Out, class Method>
  absl::Status SendControl(const In& in, Out* out, Method method);

  SimulatedFleet* const fleet_;
  const size_t rank_;
  const FaultRates rates_;
  std::atomic<bool> faulty_{true}, passes_fence_{false};

  absl::Mutex mutex_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  int refused_calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cistern
