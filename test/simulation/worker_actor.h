// A worker of the simulation: claims, trains passes, and goes back to the last commit when one is
// lost, one verb at a time. The real client is under it.
//
// What a pass writes is a function of the pass, except in the table "writer", whose rows all say
// which actor wrote them: parts of two attempts would show. A counter row and a dense sum grow by
// one a pass: a pass that was applied twice, or not, would show.
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
// Pushes one pass: that after client.committed_pass().
absl::Status PushPass(ParameterClient& client, uint32_t writer);

// Threads: one at a time (busy).
class WorkerActor {
 public:
  struct Options {
    uint32_t id = 0;
    uint64_t seed = 0;
    FaultRates rates;
    PassId last_pass = 0;       // trains no further
    uint32_t commit_every = 1;  // durable commits; the others are in memory only
  };
  WorkerActor(SimulatedFleet* fleet, const Options& options);

  // The next verb. kOver: refused, or trained as far as it should; it does nothing any more.
  enum class Outcome { kGoesOn, kCommitted, kOver, kBroken };
  Outcome Step();
  std::string trouble() const { return trouble_; }  // kBroken: the error

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
  std::string trouble_;
};

}  // namespace cistern
