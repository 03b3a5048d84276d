// One run of the simulation: a fleet, workers that replace each other while old ones stay alive,
// and faults drawn from a seed. The result describes the first error found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/simulation/simulated_fleet.h"

namespace cistern {

// The expected tables, from a fleet without faults.
class ReferenceRun {
 public:
  ReferenceRun();
  struct Digests {
    uint64_t rows = 0, sum = 0;
    bool operator==(const Digests&) const = default;
  };
  // The digests after pass p, at index p.
  const std::vector<Digests>& after() const { return after_; }
  // The digest of the table "writer" after `writer` has written it.
  uint64_t WriterDigest(uint32_t writer) const { return writers_[writer]; }

  static constexpr PassId kPasses = 10;
  static constexpr uint32_t kWriters = 64;

 private:
  std::vector<Digests> after_;
  std::vector<uint64_t> writers_;
};

struct SimulationResult {
  std::string wrong;  // the first error; empty: none
  uint64_t commits = 0, workers = 0, steps = 0;
};

// zombies_pass_fence: a mutant in which messages of old workers carry the newest term.
SimulationResult Simulate(uint64_t seed, const ReferenceRun& reference, FaultCounts* counts,
                          bool zombies_pass_fence = false);

}  // namespace cistern
