// Whether the tests of the ops that are beside this one were run on a GPU too.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cuda/device.h"

namespace cistern {
namespace {

TEST(Gpu, IsThereToTestOn) {
  const DeviceQuery query = QueryGpus();
  if (!query.gpus.empty()) return;
  // scripts/gpu_check.sh asks for one: a machine whose GPU is not seen must not pass.
  ASSERT_EQ(std::getenv("CISTERN_REQUIRE_GPU"), nullptr) << query.reason;
  GTEST_SKIP() << "no GPU: " << query.reason << "; the tests beside this one ran on the CPU only";
}

}  // namespace
}  // namespace cistern
