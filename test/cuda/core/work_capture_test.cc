// Captured work has the same results as directly enqueued work, on every available device.
#include "cuda/core/work_capture.h"

#include <gmock/gmock.h>

#include <thread>

#include "cuda/core/event.h"
#include "cuda/op/dense/elementwise.h"
#include "cuda/op/dense/sum.h"
#include "test/cuda/op/op_test.h"

namespace cistern {
namespace {

using testing::ElementsAre;

class WorkCaptureTest : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    op::StreamOfTest() = GetParam() == DeviceKind::kCuda ? &op::GpuStream() : nullptr;
    if (GetParam() == DeviceKind::kCuda) {
      absl::StatusOr<Stream> made = Stream::OnGpu(0);
      ASSERT_TRUE(made.ok()) << made.status();
      side_ = *std::move(made);
    }
  }
  Stream& stream() { return GetParam() == DeviceKind::kCuda ? op::GpuStream() : cpu_; }
  // The expected number of graphs: 0 on the CPU.
  uint64_t OnGpu(uint64_t count) const { return GetParam() == DeviceKind::kCuda ? count : 0; }

  Stream cpu_, side_;
};

TEST_P(WorkCaptureTest, EachRunUsesItsOwnArguments) {
  op::Array<float> x(4, 0.0f), y(4, 0.0f);
  WorkCapture capture;
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    // The number of filled elements changes with the value; runs do not wait for each other.
    capture.Run(stream(), [&] {
      op::Fill(value, x.data(), static_cast<size_t>(value), stream());
      op::Fill(10 * value, y.data() + static_cast<size_t>(value), 1, stream());
    });
  }
  EXPECT_THAT(x.Read(), ElementsAre(3, 3, 3, 0));
  EXPECT_THAT(y.Read(), ElementsAre(0, 10, 20, 30));
  EXPECT_EQ(capture.graphs_built(), OnGpu(1));  // the first run is direct
  EXPECT_EQ(capture.graphs_launched(), OnGpu(2));
  EXPECT_TRUE(capture.status().ok()) << capture.status();
}

TEST_P(WorkCaptureTest, OtherWorkBuildsAnotherGraph) {
  op::Array<float> x(3, 0.0f);
  WorkCapture capture;
  for (const size_t fills : {1, 1, 2, 2, 3}) {
    capture.Run(stream(), [&] {
      for (size_t i = 0; i < fills; ++i) op::Fill(7, x.data() + i, 1, stream());
    });
  }
  EXPECT_THAT(x.Read(), ElementsAre(7, 7, 7));
  EXPECT_EQ(capture.graphs_built(), OnGpu(3));
  EXPECT_EQ(capture.graphs_launched(), OnGpu(4));
}

// The host may take long to capture; the device has nothing to do meanwhile.
TEST_P(WorkCaptureTest, RecordsItsBeginningAfterTheCapture) {
  op::Array<float> x(4, 0.0f);
  absl::StatusOr<Event> end = Event::Create(GetParam());
  ASSERT_TRUE(end.ok());
  WorkCapture capture;
  for (const bool direct : {true, false}) {
    absl::StatusOr<Event> begin = Event::Create(GetParam());
    ASSERT_TRUE(begin.ok());
    bool recorded = false;
    const auto was_recorded = [&] {  // an event that was never recorded has no time
      EXPECT_TRUE(begin->Wait().ok());
      return GetParam() == DeviceKind::kCuda ? begin->MillisecondsSince(*end).ok()
                                             : begin->MillisecondsSince(*end).value() >= 0;
    };
    end->Record(stream());
    capture.Run(
        stream(),
        [&] {
          recorded = was_recorded();
          op::Fill(7, x.data(), 4, stream());
        },
        /*beside=*/nullptr, &*begin);
    EXPECT_EQ(recorded, direct || GetParam() == DeviceKind::kCpu);
    end->Record(stream());
    ASSERT_TRUE(end->Wait().ok());
    const absl::StatusOr<double> ms = end->MillisecondsSince(*begin);
    ASSERT_TRUE(ms.ok()) << ms.status();
    EXPECT_GE(*ms, 0);
  }
  EXPECT_EQ(capture.graphs_launched(), OnGpu(1));
  EXPECT_THAT(x.Read(), ElementsAre(7, 7, 7, 7));
}

TEST_P(WorkCaptureTest, CapturesAForkedStream) {
  op::Array<float> x(2, 0.0f);
  op::Array<double> sum(1);
  op::Array<float> scratch(op::SumScratchFloats(2));
  absl::StatusOr<Event> forked = Event::Create(GetParam()), joined = Event::Create(GetParam());
  ASSERT_TRUE(forked.ok() && joined.ok());
  WorkCapture capture;
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    capture.Run(stream(), [&] {
      op::Fill(value, x.data(), 1, stream());
      forked->Record(stream());
      forked->MakeWait(side_);
      op::Fill(10 * value, x.data() + 1, 1, side_);
      joined->Record(side_);
      joined->MakeWait(stream());
      op::SumOfSquares(x.data(), sum.data(), 2, scratch.data(), stream());
    });
  }
  EXPECT_THAT(sum.Read(), ElementsAre(9 + 900));
  EXPECT_EQ(capture.graphs_built(), OnGpu(1));
  EXPECT_TRUE(side_.status().ok()) << side_.status();
}

TEST_P(WorkCaptureTest, WorkThatCannotBeCapturedRunsWithoutAGraph) {
  op::Array<float> x(1, 0.0f);
  absl::StatusOr<Event> forked = Event::Create(GetParam());
  ASSERT_TRUE(forked.ok());
  WorkCapture capture;
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    capture.Run(stream(), [&] {
      op::Fill(value, x.data(), 1, stream());
      forked->Record(stream());
      forked->MakeWait(side_);  // and side_ never joins
      op::Fill(value, x.data(), 1, side_);
    });
    ASSERT_TRUE(side_.Wait().ok()) << side_.status();
  }
  EXPECT_THAT(x.Read(), ElementsAre(3));
  EXPECT_EQ(capture.graphs_launched(), 0u);
  EXPECT_EQ(capture.status().ok(), GetParam() == DeviceKind::kCpu);
}

TEST_P(WorkCaptureTest, WorkThatFailsOnlyInACaptureRunsWithoutAGraph) {
  op::Array<float> x(1, 0.0f);
  absl::StatusOr<Event> forked = Event::Create(GetParam()), joined = Event::Create(GetParam());
  ASSERT_TRUE(forked.ok() && joined.ok());
  Stream& main = stream();  // once, because stream() replaces a stream with an error
  WorkCapture capture;
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    const auto enqueue = [&] {
      forked->Record(main);
      forked->MakeWait(side_);
      main.Record(side_.Wait());  // as a library may do; a capture rejects it
      op::Fill(value, x.data(), 1, side_);
      joined->Record(side_);
      joined->MakeWait(main);
    };
    capture.Run(main, enqueue, &side_);
  }
  EXPECT_TRUE(main.status().ok()) << main.status();
  ASSERT_TRUE(side_.status().ok()) << side_.status();
  EXPECT_THAT(x.Read(), ElementsAre(3));
  EXPECT_EQ(capture.graphs_launched(), 0u);
  EXPECT_EQ(capture.status().ok(), GetParam() == DeviceKind::kCpu);
}

TEST_P(WorkCaptureTest, ErrorsOfOpsPersist) {
  WorkCapture capture;
  for (const bool fails : {false, true}) {
    capture.Run(side_, [&] {
      if (fails) side_.Record(absl::UnimplementedError("a product of 99 tensors"));
    });
  }
  EXPECT_EQ(side_.status().message(), "a product of 99 tensors");
}

// The next pass is uploaded to the device while a step of this one is captured.
TEST_P(WorkCaptureTest, OtherThreadsMayAllocateDuringACapture) {
  op::Array<float> x(1, 0.0f);
  WorkCapture capture;
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    capture.Run(stream(), [&] {
      std::thread([] {
        MemoryPool pool(GetParam(), 0, 1 << 20);
        for (const MemoryPlace place : {MemoryPlace::kDevice, MemoryPlace::kPinned}) {
          const absl::Status taken = pool.Take(place, 4096, "test").status();
          EXPECT_TRUE(taken.ok()) << taken;
        }
      }).join();
      op::Fill(value, x.data(), 1, stream());
    });
  }
  EXPECT_THAT(x.Read(), ElementsAre(3));
  EXPECT_TRUE(capture.status().ok()) << capture.status();
  EXPECT_EQ(capture.graphs_launched(), OnGpu(2));
}

INSTANTIATE_TEST_SUITE_P(Devices, WorkCaptureTest, testing::ValuesIn(op::TestedDevices()),
                         [](const auto& device) {
                           return device.param == DeviceKind::kCpu ? "cpu_" : "cuda_";
                         });

}  // namespace
}  // namespace cistern
