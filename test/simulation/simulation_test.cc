// Runs production servers and clients under all simulated faults, for a range of seeds.
//
//   CISTERN_SEEDS=20000 build/release/bin/simulation_test     more seeds
//   CISTERN_FIRST_SEED=3501 CISTERN_SEEDS=500 ...             500 seeds, starting at 3501
//   CISTERN_SEED=17 build/release/bin/simulation_test         a single seed
//
// A long run can be split into parts, in parallel or in sequence; each part reports its progress
// every 500 seeds.
#include "test/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"
#include "common/base/log.h"

namespace cistern {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

std::ostream& operator<<(std::ostream& out, const FaultCounts& counts) {
  return out << counts.calls << " calls, " << counts.lost << " requests or replies lost, "
             << counts.twice << " twice, " << counts.late << " late, " << counts.kills
             << " kills within calls, " << counts.partitions << " partitions, " << counts.outages
             << " power failures";
}

TEST(Simulation, EverySeedEndsLikeARunWithoutFaults) {
  SetLogLevel("off");
  const ReferenceRun reference;
  FaultCounts counts;
  const uint64_t one = FromEnvironment("CISTERN_SEED", 0);
  const uint64_t first = one == 0 ? FromEnvironment("CISTERN_FIRST_SEED", 1) : one,
                 num = one == 0 ? FromEnvironment("CISTERN_SEEDS", 75) : 1;
  constexpr uint64_t kProgress = 500;
  uint64_t commits = 0, workers = 0, wrong = 0;
  for (uint64_t seed = first; seed < first + num; ++seed) {
    const SimulationResult result = Simulate(seed, reference, &counts);
    commits += result.commits;
    workers += result.workers;
    wrong += !result.wrong.empty();
    EXPECT_EQ(result.wrong, "") << "to repeat: CISTERN_SEED=" << seed;
    const uint64_t done = seed - first + 1;
    if (done % kProgress == 0 && done < num) {
      std::cout << "up to " << seed << ": " << done << " of " << num << " seeds, " << wrong
                << " went wrong" << std::endl;
    }
  }
  std::cout << "seeds " << first << " to " << first + num - 1 << ": " << commits
            << " acknowledged commits of " << workers << " workers; " << counts << std::endl;
}

// Shows that the checks detect the errors that the fence prevents.
TEST(Simulation, WithoutTheFenceASeedFails) {
  SetLogLevel("off");
  const ReferenceRun reference;
  FaultCounts counts;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const SimulationResult result = Simulate(seed, reference, &counts, /*zombies_pass_fence=*/true);
    if (result.wrong.empty()) continue;
    std::cout << "seed " << seed << ": " << result.wrong << std::endl;
    return;
  }
  FAIL() << "no error was detected in 200 seeds without a fence";
}

}  // namespace
}  // namespace cistern
