// Device memory, and copies to and from it, on every available device.
#include "cuda/core/memory.h"

#include <gmock/gmock.h>

#include <numeric>

#include "cuda/core/event.h"
#include "cuda/core/stream.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/key/sort_scores.h"
#include "test/cuda/op/op_test.h"

namespace cistern {
namespace {

using testing::HasSubstr;

class MemoryTest : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceKind::kCpu) return;
    absl::StatusOr<Stream> made = Stream::OnGpu(0);
    ASSERT_TRUE(made.ok()) << made.status();
    stream_ = *std::move(made);
  }
  Memory Take(MemoryPlace place, size_t bytes, const char* tag) {
    absl::StatusOr<Memory> memory = pool_.Take(place, bytes, tag);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }

  static constexpr uint64_t kCap = 1 << 20;
  Stream stream_;
  MemoryPool pool_{GetParam(), 0, kCap};
};

TEST_P(MemoryTest, CopiesToTheDeviceAndBack) {
  Memory from = Take(MemoryPlace::kPinned, 4000, "from"),
         to = Take(MemoryPlace::kPinned, 4000, "to");
  Memory there = Take(MemoryPlace::kDevice, 4000, "there"),
         next = Take(MemoryPlace::kDevice, 4000, "n");
  auto* numbers = from.view<uint32_t>().data;
  std::iota(numbers, numbers + 1000, 7u);
  CopyToDevice(std::as_const(from).view<uint32_t>(), there.view<uint32_t>(), stream_);
  CopyOnDevice(there.data(), next.data(), 4000, stream_);
  ZeroOnDevice(next.data(), 40, stream_);
  CopyToHost(std::as_const(next).view<uint32_t>(), to.view<uint32_t>(), stream_);
  ASSERT_TRUE(stream_.Wait().ok()) << stream_.status();
  const auto* back = to.view<uint32_t>().data;
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(back[i], i < 10 ? 0 : 7 + i) << i;
}

TEST_P(MemoryTest, IsZeroedAndAligned) {
  Memory there = Take(MemoryPlace::kDevice, 1000, "there"),
         back = Take(MemoryPlace::kPinned, 1000, "b");
  std::memset(back.data(), 1, 1000);
  CopyToHost(there.data(), back.data(), 1000, stream_);
  ASSERT_TRUE(stream_.Wait().ok()) << stream_.status();
  const auto* bytes = static_cast<const char*>(back.data());
  EXPECT_EQ(std::count(bytes, bytes + 1000, 0), 1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(there.data()) % 256, 0u);
}

// Large memory is used again on the CPU, for a size that is nearly the same.
TEST(MemoryPool, UsesLargeMemoryAgainAndClearsIt) {
  constexpr size_t kBytes = size_t{16} << 20;
  MemoryPool pool(DeviceKind::kCpu, 0, size_t{1} << 30);
  const void* before = nullptr;
  {
    Memory first = pool.Take(MemoryPlace::kDevice, kBytes, "rows", MemoryFill::kAny).value();
    before = first.data();
    std::memset(first.data(), 0xFF, kBytes);
  }
  EXPECT_EQ(pool.bytes(), 0u);
  Memory again = pool.Take(MemoryPlace::kDevice, kBytes + 1000, "rows").value();
  EXPECT_EQ(again.data(), before);
  const auto* bytes = static_cast<const unsigned char*>(again.data());
  EXPECT_TRUE(std::all_of(bytes, bytes + kBytes + 1000, [](unsigned char b) { return b == 0; }));
  // Memory of another size is new.
  Memory larger = pool.Take(MemoryPlace::kDevice, 2 * kBytes, "rows").value();
  EXPECT_NE(larger.data(), before);
  EXPECT_EQ(pool.bytes(), 3 * kBytes + 1000);
}

// The kernel needs long to clear new pages: memory that grows keeps those that it had.
TEST(MemoryPool, LargerMemoryKeepsThePagesOfSmallerMemory) {
  constexpr size_t kBytes = size_t{16} << 20;
  MemoryPool pool(DeviceKind::kCpu, 0, size_t{1} << 30);
  const auto fill = [&](size_t size, int byte) {
    Memory memory = pool.Take(MemoryPlace::kDevice, size, "rows", MemoryFill::kAny).value();
    std::memset(memory.data(), byte, size);
  };
  const auto all = [](const Memory& memory, size_t size, int byte) {
    const auto* bytes = static_cast<const unsigned char*>(memory.data());
    return std::all_of(bytes, bytes + size, [&](unsigned char b) { return b == byte; });
  };
  fill(kBytes, 0xA5);
  {
    const Memory grown =
        pool.Take(MemoryPlace::kDevice, 3 * kBytes, "rows", MemoryFill::kAny).value();
    EXPECT_TRUE(all(grown, kBytes, 0xA5));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(grown.data()) % (size_t{2} << 20), 0u);
  }
  fill(3 * kBytes, 0x5A);
  EXPECT_TRUE(all(pool.Take(MemoryPlace::kDevice, 8 * kBytes, "rows").value(), 8 * kBytes, 0));
}

TEST_P(MemoryTest, PoolEnforcesItsCapAndReportsUseByTag) {
  Memory rows = Take(MemoryPlace::kDevice, 600000, "rows");
  const absl::Status refused = pool_.Take(MemoryPlace::kPinned, 600000, "staging").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("600000 bytes for staging"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("600000 for rows"));
  EXPECT_EQ(pool_.bytes(), 600000u);
  rows = Memory();
  Memory staging = Take(MemoryPlace::kPinned, 600000, "staging");
  const std::vector<MemoryUse> uses = pool_.uses();
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].tag, "rows");
  EXPECT_EQ(uses[0].bytes, 0u);
  EXPECT_EQ(uses[0].bytes_max, 600000u);
  EXPECT_EQ(uses[1].bytes, 600000u);
}

TEST_P(MemoryTest, EventsOrderStreamsAndMeasureTime) {
  absl::StatusOr<Event> before = Event::Create(GetParam()), after = Event::Create(GetParam());
  ASSERT_TRUE(before.ok() && after.ok());
  before->Record(stream_);
  after->Record(stream_);
  after->MakeWait(stream_);
  ASSERT_TRUE(after->Wait().ok());
  const absl::StatusOr<double> ms = after->MillisecondsSince(*before);
  ASSERT_TRUE(ms.ok()) << ms.status();
  EXPECT_GE(*ms, 0);
  EXPECT_TRUE(stream_.Wait().ok()) << stream_.status();
}

TEST_P(MemoryTest, ErrorsDoNotLeakIntoTheNextCall) {
  const bool on_gpu = GetParam() == DeviceKind::kCuda;
  absl::StatusOr<Event> before = Event::Create(GetParam()), after = Event::Create(GetParam());
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(after->MillisecondsSince(*before).ok(), !on_gpu);  // neither was recorded
  Memory x = Take(MemoryPlace::kDevice, 4000, "x");
  ZeroOnDevice(x.data(), 4000, stream_);
  after->Record(stream_);
  while (!after->HasHappened().value()) continue;
  Memory scratch = Take(MemoryPlace::kDevice, op::SortScoresScratchBytes(1000, stream_), "scratch");
  op::SortScores(x.view<float>().data, 1000, scratch.data(), stream_);
  EXPECT_TRUE(stream_.Wait().ok()) << stream_.status();
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryTest, testing::ValuesIn(op::TestedDevices()),
                         [](const testing::TestParamInfo<DeviceKind>& tested) {
                           return tested.param == DeviceKind::kCpu ? "cpu" : "cuda_0";
                         });

TEST(StreamOfGpu, RejectsAMissingGpu) {
  const absl::Status status = Stream::OnGpu(99).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("GPU 99: "));
}

TEST(StreamOfGpu, RecordsUnimplementedWithoutAGpu) {
  Stream stream(DeviceKind::kCuda);
  float x = 1;
  op::Fill(2, &x, 1, stream);
  EXPECT_EQ(stream.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(x, 1);
}

}  // namespace
}  // namespace cistern
