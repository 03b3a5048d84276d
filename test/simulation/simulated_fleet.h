// A simulated fleet: durable servers in this process, on one disk that can lose power, behind a
// network that loses, duplicates and delays messages.
//
// Servers and clients are the production code. Simulated are only the disk below them
// (test/support/memory_file_system.h) and the links between them (SimulatedLink).
//
// Each link draws its faults from the seed independently, so the same seed gives every link the
// same faults. The order of calls to different servers depends on the client's threads.
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

// The faults of a call; each rate is per 10,000 calls.
struct FaultRates {
  int request_lost = 0;  // the server does not receive the call
  int reply_lost = 0;    // the server acts, but the reply is lost
  int twice = 0;         // the server acts twice; the second reply counts
  int late = 0;          // a copy is kept and arrives at any later time; half of the originals are
                         // lost
  int killed = 0;        // the server dies before, during (at a call to its disk) or after the call
  int meanwhile = 0;     // SimulatedFleet::meanwhile runs first
  int partition = 0;     // the link refuses this call and the next ones

  static FaultRates Of(int per_ten_thousand);
};

// The number of faults of each kind.
struct FaultCounts {
  std::atomic<uint64_t> calls{0}, lost{0}, twice{0}, late{0}, kills{0}, partitions{0}, outages{0};
};

class SimulatedLink;

// Threads: any thread. `meanwhile` may call any method.
class SimulatedFleet {
 public:
  using Act = std::function<absl::Status(server::ServerNode&)>;

  // Creates durable servers on an empty disk, with the other options from `base`.
  SimulatedFleet(uint32_t server_num, const server::ServerOptions& base, FaultCounts* counts);
  ~SimulatedFleet();

  size_t size() const { return machines_.size(); }
  bool IsUp(size_t rank);
  // Loses the server's memory; the disk stays. Waits for its calls in progress.
  void Kill(size_t rank);
  // Starts the server; no effect on a running one.
  absl::Status Start(size_t rank);
  absl::Status StartAll();
  // Kills all servers; the disk loses unsynced data, drawn from the seed.
  void LosePower(uint64_t seed);
  // Kills this server at its `call`-th call to the disk, which ignores all calls from then on.
  void StopDiskAt(size_t rank, uint64_t call);

  // Delivers a call to a server; kUnavailable if it is down.
  absl::Status Arrive(size_t rank, const Act& act);

  void KeepLate(size_t rank, Act act);
  size_t late_num();
  // Delivers one of the kept messages, if any.
  void DeliverLate(uint64_t draw);

  // Runs while a call is in transit; never concurrently with itself.
  std::function<void()> meanwhile;
  void Meanwhile();

  MemoryFileSystem& disk() { return *disk_; }
  // The claim of a term, read from the disk.
  server::TermClaim ClaimOf(Term term);
  FaultCounts& counts() { return *counts_; }

 private:
  struct Machine {
    absl::Mutex mutex;  // held shared by the server's calls in progress
    std::unique_ptr<FaultFileSystem> files;
    std::unique_ptr<server::ServerNode> node;
    std::atomic<bool> dying{false};  // the disk and the process stop at some call
  };

  server::ServerOptions base_;
  FaultCounts* const counts_;
  std::unique_ptr<MemoryFileSystem> disk_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::atomic<bool> in_meanwhile_{false};

  absl::Mutex late_mutex_;
  std::deque<std::pair<size_t, Act>> late_ ABSL_GUARDED_BY(late_mutex_);
};

// The network link from one client to one server.
//
// Threads: any thread.
class SimulatedLink : public ControlPlane, public DataPlane {
 public:
  SimulatedLink(SimulatedFleet* fleet, size_t rank, uint64_t seed, const FaultRates& rates);

  void Call(FrameKind kind, Frame request, absl::Duration timeout, Done done) override;
#define CISTERN_METHOD(name, request, reply, length, effect, role) \
  absl::Status name(const v1::request& in, v1::reply* out) override;
  CISTERN_CONTROL_METHODS(CISTERN_METHOD)
#undef CISTERN_METHOD

  void StopFaults() {
    faulty_ = false;
  }
  // Disables the fence: every message carries the identity of the server's current writer.
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
  // late: the action of a kept copy.
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
