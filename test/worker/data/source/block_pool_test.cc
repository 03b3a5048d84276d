#include "worker/data/source/block_pool.h"

#include <gtest/gtest.h>

namespace cistern::data {
namespace {

TEST(BlockPool, ReturnsTheMemoryOfAsManyBatchesAsTheLargestPassHad) {
  BlockPool pool;
  EXPECT_EQ(pool.Acquire().label.capacity(), 0u);
  const auto batches = [](size_t count) {
    std::vector<HostBatch> made(count);
    for (HostBatch& batch : made) {
      batch.label.resize(10);
      batch.sparse.emplace_back().keys.resize(20);
    }
    return made;
  };
  pool.Release(batches(2));
  pool.Release(batches(1));
  for (int i = 0; i < 2; ++i) {
    const SampleBlock block = pool.Acquire();
    EXPECT_GE(block.label.capacity(), 10u);
    EXPECT_GE(block.sparse[0].keys.capacity(), 20u);
  }
  EXPECT_EQ(pool.Acquire().label.capacity(), 0u);
}

}  // namespace
}  // namespace cistern::data
