// One run of the simulation: a fleet, workers that follow each other while old ones live on, and
// everything that goes wrong between them, drawn from a seed. It says what is wrong with the
// result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/simulation/simulated_fleet.h"

namespace cistern {

// What a fleet without faults holds.
class ReferenceRun {
 public:
  ReferenceRun();
  struct Digests {
    uint64_t rows = 0, sum = 0;
    bool operator==(const Digests&) const = default;
  };
  // After pass p: [p].
  const std::vector<Digests>& after() const { return after_; }
  // Of the table "writer" once `writer` has written it.
  uint64_t WriterDigest(uint32_t writer) const { return writers_[writer]; }

  static constexpr PassId kPasses = 10;
  static constexpr uint32_t kWriters = 64;

 private:
  std::vector<Digests> after_;
  std::vector<uint64_t> writers_;
};

struct SimulationResult {
  std::string wrong;  // empty: everything is as it must be
  uint64_t commits = 0, workers = 0, steps = 0;
};

// zombies_pass_fence: the mutant; what an old worker sends says that it is of the newest epoch.
SimulationResult Simulate(uint64_t seed, const ReferenceRun& reference, FaultCounts* counts,
                          bool zombies_pass_fence = false);

}  // namespace cistern
