#include "common/base/secret.h"

#include <gtest/gtest.h>

#include <set>

namespace cistern {
namespace {

TEST(NewSecret, IsNeverZeroAndNeverRepeats) {
  std::set<uint64_t> secrets;
  for (int i = 0; i < 1000; ++i) secrets.insert(NewSecret());
  EXPECT_EQ(secrets.size(), 1000u);
  EXPECT_EQ(secrets.count(0), 0u);
}

}  // namespace
}  // namespace cistern
