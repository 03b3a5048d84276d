#include "worker/model/graph/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace cistern::model {
namespace {

TEST(MemoryPlan, BuffersWithDisjointLifetimesShareMemory) {
  const MemoryPlan plan = PlanMemory({{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}});
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_EQ(plan.offsets[1], plan.offsets[3]);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.floats, 2 * 112u);  // rounded up to whole cache lines
}

TEST(MemoryPlan, BuffersWithOverlappingLifetimesDoNotOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers(1 + random() % 20);
    size_t total = 0;
    for (Lifetime& b : buffers) {
      b.first = random() % 10;
      b.last = b.first + random() % 5;
      b.floats = random() % 50;
      total += (b.floats + 15) / 16 * 16;
    }
    const MemoryPlan plan = PlanMemory(buffers);
    EXPECT_LE(plan.floats, total);
    for (size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % 16, 0u);
      EXPECT_LE(plan.offsets[i] + buffers[i].floats, plan.floats);
      for (size_t j = 0; j < i; ++j) {
        if (buffers[i].first > buffers[j].last || buffers[j].first > buffers[i].last) continue;
        const size_t end_i = plan.offsets[i] + buffers[i].floats;
        const size_t end_j = plan.offsets[j] + buffers[j].floats;
        EXPECT_TRUE(end_i <= plan.offsets[j] || end_j <= plan.offsets[i])
            << "round " << round << ", buffers " << i << " and " << j;
      }
    }
  }
}

TEST(MemoryPlan, IsEmptyWithoutBuffers) {
  EXPECT_EQ(PlanMemory({}).floats, 0u);
}

}  // namespace
}  // namespace cistern::model
