// Reports whether the op tests of this program also ran on a GPU, and on a second one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "cuda/core/device.h"
#include "cuda/core/device_context.h"
#include "cuda/core/event.h"
#include "cuda/op/dense/elementwise.h"

namespace cistern {
namespace {

TEST(Gpu, IsAvailable) {
  const DeviceQuery query = QueryGpus();
  if (!query.gpus.empty()) return;
  // scripts/gpu_check.sh sets CISTERN_REQUIRE_GPU: it must fail if the GPU is not visible.
  ASSERT_EQ(std::getenv("CISTERN_REQUIRE_GPU"), nullptr) << query.reason;
  GTEST_SKIP() << "no GPU: " << query.reason << "; the other op tests ran on the CPU only";
}

// A thread starts on GPU 0, whatever GPU its stream is on.
TEST(SecondGpu, WorksFromEveryThread) {
  if (QueryGpus().gpus.size() < 2) GTEST_SKIP() << "fewer than two GPUs";
  absl::StatusOr<std::unique_ptr<DeviceContext>> device = DeviceContext::Open(DeviceKind::kCuda, 1);
  ASSERT_TRUE(device.ok()) << device.status();
  Stream& stream = (*device)->stream();
  absl::StatusOr<Memory> there = (*device)->pool().Take(MemoryPlace::kDevice, 4, "test");
  ASSERT_TRUE(there.ok()) << there.status();
  float here = 0;
  std::thread([&] {
    absl::StatusOr<Event> filled = Event::Create(DeviceKind::kCuda);
    ASSERT_TRUE(filled.ok()) << filled.status();
    op::Fill(7, static_cast<float*>(there->data()), 1, stream);
    filled->Record(stream);
    EXPECT_TRUE(filled->Wait().ok());
    CopyToHost(there->data(), &here, 4, stream);
    EXPECT_TRUE(stream.Wait().ok()) << stream.status();
  }).join();
  EXPECT_EQ(here, 7);
}

}  // namespace
}  // namespace cistern
