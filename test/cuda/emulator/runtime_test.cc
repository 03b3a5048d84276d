// What the device layer asks of the CUDA runtime, as the emulated one shows it: priorities and
// captures of streams, and whether memory is zeroed.
#include <gtest/gtest.h>

#include "cuda/core/cuda_queue.h"
#include "cuda/core/device_context.h"
#include "cuda/core/work_capture.h"
#include "test/cuda/emulator/cuda_runtime.h"

namespace cistern {
namespace {

int PriorityOf(const Stream& stream) {
  int priority = 0;
  EXPECT_EQ(cudaStreamGetPriority(stream.queue()->stream(), &priority), cudaSuccess);
  return priority;
}

// CUDA's priorities are negative: the least one comes first.
TEST(GpuQueue, ABackgroundStreamYieldsToTheStep) {
  absl::StatusOr<std::unique_ptr<DeviceContext>> device = DeviceContext::Open(DeviceKind::kCuda);
  ASSERT_TRUE(device.ok()) << device.status();
  absl::StatusOr<Stream> side = (*device)->NewStream(StreamPriority::kStep);
  absl::StatusOr<Stream> staging = (*device)->NewStream(StreamPriority::kBackground);
  ASSERT_TRUE(side.ok() && staging.ok());
  EXPECT_EQ(PriorityOf(*side), PriorityOf((*device)->stream()));
  EXPECT_GT(PriorityOf(*staging), PriorityOf((*device)->stream()));
}

TEST(GpuQueue, KnowsWhetherItsStreamIsCaptured) {
  absl::StatusOr<Stream> stream = Stream::OnGpu(0);
  ASSERT_TRUE(stream.ok()) << stream.status();
  WorkCapture capture;
  std::vector<bool> captured;
  for (int run = 0; run < 2; ++run) {
    capture.Run(*stream, [&] { captured.push_back(stream->queue()->IsCaptured()); });
  }
  EXPECT_EQ(captured, std::vector<bool>({false, true}));  // the first run is direct
  EXPECT_FALSE(stream->queue()->IsCaptured());
}

// The emulator fills new memory with a pattern.
TEST(GpuMemory, IsZeroedUnlessItWillBeOverwritten) {
  constexpr size_t kBytes = 1000;
  absl::StatusOr<std::unique_ptr<DeviceContext>> device = DeviceContext::Open(DeviceKind::kCuda);
  ASSERT_TRUE(device.ok()) << device.status();
  for (const MemoryFill fill : {MemoryFill::kZeros, MemoryFill::kAny}) {
    absl::StatusOr<Memory> memory =
        (*device)->pool().Take(MemoryPlace::kDevice, kBytes, "rows", fill);
    ASSERT_TRUE(memory.ok()) << memory.status();
    std::vector<char> read(kBytes);
    CopyToHost(memory->data(), read.data(), kBytes, (*device)->stream());
    ASSERT_TRUE((*device)->stream().Wait().ok());
    const bool is_zero = read == std::vector<char>(kBytes, 0);
    EXPECT_EQ(is_zero, fill == MemoryFill::kZeros);
  }
}

}  // namespace
}  // namespace cistern
