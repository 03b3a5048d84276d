#include "worker/data/prepare/key_counter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(KeyCounter, IsExactBelowItsBound) {
  KeyCounter counter(100);
  for (Key key = 0; key < 100; ++key) {
    for (Key n = 0; n <= key; ++n) counter.Add(key);
  }
  EXPECT_TRUE(counter.exact());
  EXPECT_EQ(counter.Distinct(), 100u);
  EXPECT_THAT(counter.Top(2), ElementsAre(Pair(99, 100), Pair(98, 99)));
}

TEST(KeyCounter, EstimatesWithinThreePercentAboveItsBound) {
  for (uint64_t distinct : {2000, 50000, 1000000, 5000000}) {
    for (uint64_t step : {1ull, 0x100000000ull}) {
      KeyCounter counter(1000);
      for (uint64_t i = 0; i < distinct; ++i) {
        counter.Add(i * step);
        counter.Add(7 * step);
      }
      EXPECT_FALSE(counter.exact());
      EXPECT_NEAR(static_cast<double>(counter.Distinct()), distinct, 0.03 * distinct);
      EXPECT_THAT(counter.Top(1), ElementsAre(Pair(7 * step, distinct + 1)));
    }
  }
}

}  // namespace
}  // namespace cistern::data
