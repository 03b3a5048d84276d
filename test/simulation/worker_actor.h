// A worker of the simulation: claims, trains passes, and returns to the last commit after a loss,
// one verb at a time, through the real client.
//
// The values that a pass writes are a function of the pass, except in the table "writer", whose
// rows name the actor that wrote them: this reveals mixtures of two attempts. A counter row and a
// dense sum grow by one per pass: this reveals passes that were applied twice or not at all. Like
// the trainer, the actor carries the counter row over from the pass in commit to the next pass, and
// drops it with a lost pass.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "test/simulation/simulated_fleet.h"
#include "worker/client/parameter_client.h"

namespace cistern {

inline constexpr TableId kRows = 0, kWriter = 1;  // sparse
inline constexpr TableId kSum = 0;                // dense

v1::Schema SimulationSchema();
// Pushes the pass after client.committed_pass(). carried: the counter row as the pass before left
// it, empty to pull it; receives the row that is pushed.
absl::Status PushPass(ParameterClient& client, uint32_t writer, std::vector<float>* carried);

// Threads: one at a time (busy).
class WorkerActor {
 public:
  struct Options {
    uint32_t id = 0;
    uint64_t seed = 0;
    FaultRates rates;
    PassId last_pass = 0;       // the last pass to train
    uint32_t commit_every = 1;  // every n-th commit is durable; the others are in memory only
  };
  WorkerActor(SimulatedFleet* fleet, const Options& options);

  // Runs the next verb. kOver: the actor was refused or has trained its last pass, and is done.
  enum class Outcome { kGoesOn, kCommitted, kOver, kBroken };
  Outcome Step();
  std::string trouble() const { return trouble_; }  // the error, after kBroken

  uint32_t id() const { return options_.id; }
  ParameterClient* client() { return client_.get(); }
  void StopFaults();
  void PassFence();

  std::atomic<bool> busy{false};

 private:
  absl::Status Connect();
  absl::Status Commit(bool* durable);
  Outcome After(const absl::Status& status);

  const Options options_;
  std::vector<std::unique_ptr<SimulatedLink>> links_;
  std::unique_ptr<ParameterClient> client_;
  enum { kConnect, kClaim, kBegin, kPush, kCommit, kOver } stage_ = kConnect;
  std::vector<float> carried_;  // the counter row of the last pass; empty after a claim
  std::string trouble_;
};

}  // namespace cistern
