// Passes on machines with and without a GPU; without one, the reason must be readable.
#include "cuda/core/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(QueryGpus, ListsGpusOrGivesTheReason) {
  const DeviceQuery query = QueryGpus();
  if (query.gpus.empty()) {
    EXPECT_GT(query.reason.size(), 10u);
    EXPECT_EQ(DescribeGpus(query), "no GPU: " + query.reason + "\n");
    return;
  }
  EXPECT_EQ(query.reason, "");
  EXPECT_GE(query.driver_version, 12000);
  for (size_t i = 0; i < query.gpus.size(); ++i) {
    const GpuInfo& gpu = query.gpus[i];
    EXPECT_EQ(gpu.index, static_cast<int>(i));
    EXPECT_FALSE(gpu.name.empty());
    EXPECT_GT(gpu.memory_bytes, uint64_t{1} << 30);
    EXPECT_GE(gpu.compute_major, 5);
    EXPECT_GT(gpu.multiprocessors, 0);
  }
}

TEST(QueryGpus, ReturnsTheSameResultTwice) {
  EXPECT_EQ(DescribeGpus(QueryGpus()), DescribeGpus(QueryGpus()));
}

TEST(TestGpu, PassesOnEveryGpuAndRejectsOtherIndices) {
  const int count = static_cast<int>(QueryGpus().gpus.size());
  for (int i = 0; i < count; ++i) EXPECT_TRUE(TestGpu(i).ok()) << TestGpu(i);
  for (const int missing : {-1, count}) {
    const absl::Status status = TestGpu(missing);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr("GPU " + std::to_string(missing)));
  }
}

TEST(DriverTrouble, NamesTheProblem) {
  EXPECT_EQ(DriverTrouble(0, 13000), "this machine has no CUDA driver");
  EXPECT_EQ(DriverTrouble(12040, 13000),
            "the driver supports CUDA 12.4 but this build needs 13.0: update the driver");
  EXPECT_EQ(DriverTrouble(13000, 13000), "");
  EXPECT_EQ(DriverTrouble(13010, 13000), "");
}

TEST(CheckGpu, RejectsUnsupportedComputeCapabilities) {
  EXPECT_TRUE(CheckGpu({0, "A100", 1, 8, 0, 108}).ok());
  EXPECT_TRUE(CheckGpu({0, "H200", 1, 9, 0, 132}).ok());
  const absl::Status old = CheckGpu({1, "V100", 1, 7, 0, 80});
  EXPECT_EQ(old.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(old.message()), HasSubstr("GPU 1 (V100) has compute capability 7.0"));
}

TEST(DescribeGpus, PrintsOneLinePerGpu) {
  DeviceQuery query;
  query.gpus.push_back({0, "H100", uint64_t{80} << 30, 9, 0, 132});
  query.gpus.push_back({1, "A100", uint64_t{40} << 30, 8, 0, 108});
  EXPECT_EQ(DescribeGpus(query),
            "GPU 0: H100, 80.0 GiB, compute capability 9.0, 132 multiprocessors\n"
            "GPU 1: A100, 40.0 GiB, compute capability 8.0, 108 multiprocessors\n");
}

TEST(DescribeCudaBuild, NamesToolkitAndLibraries) {
  const std::string text = DescribeCudaBuild();
  if (text == "no CUDA") return;
  EXPECT_THAT(text, StartsWith("CUDA "));
  EXPECT_THAT(text, HasSubstr("sm_"));
  EXPECT_THAT(text, HasSubstr("cuBLAS"));
  EXPECT_THAT(text, HasSubstr("NCCL"));
}

}  // namespace
}  // namespace cistern
