#include "common/base/machine_limits.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cistern {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A file system root with a machine of 16 GiB, of which 12 are available. Quotas are compared with
// the affinity of this process, which has a processor at least.
class MachineLimitsTest : public testing::Test {
 protected:
  MachineLimitsTest() : root_(testing::TempDir() + "cistern-XXXXXX") {
    if (mkdtemp(root_.data()) == nullptr) std::abort();
    root_ += "/";
    Write("proc/meminfo",
          "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:   12582912 kB\n");
  }
  ~MachineLimitsTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  MachineLimits Read() const { return ReadMachineLimits(root_); }

  const int all_cores_ = ReadMachineLimits("/nowhere/").cores;
  std::string root_;
};

TEST_F(MachineLimitsTest, WithoutControlGroupsAreThoseOfTheMachine) {
  const MachineLimits limits = Read();
  EXPECT_GE(limits.cores, 1);
  EXPECT_FALSE(limits.cores_are_of_container);
  EXPECT_EQ(limits.memory_bytes, 16384 * kMiB);
  EXPECT_EQ(limits.available_bytes, 12288 * kMiB);
  EXPECT_FALSE(limits.memory_is_of_container);
  EXPECT_EQ(limits.processes, kUnlimited);
}

TEST_F(MachineLimitsTest, AreReadFromVersion2) {
  Write("sys/fs/cgroup/memory.max", "314572800");
  Write("sys/fs/cgroup/memory.current", "104857600");
  Write("sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 52428800\nactive_file 7");
  Write("sys/fs/cgroup/cpu.max", "50000 100000");
  Write("sys/fs/cgroup/pids.max", "100");
  const MachineLimits limits = Read();
  EXPECT_EQ(limits.cores, 1);
  EXPECT_EQ(limits.cores_are_of_container, all_cores_ > 1);
  EXPECT_EQ(limits.memory_bytes, 300 * kMiB);
  EXPECT_EQ(limits.available_bytes, 250 * kMiB);  // page cache is given back
  EXPECT_TRUE(limits.memory_is_of_container);
  EXPECT_EQ(limits.processes, 100u);
}

TEST_F(MachineLimitsTest, AreReadFromVersion1) {
  Write("proc/self/cgroup", "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600");
  Write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 0");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000");
  Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  const MachineLimits limits = Read();
  EXPECT_EQ(limits.cores, 1);
  EXPECT_EQ(limits.memory_bytes, 200 * kMiB);
  EXPECT_EQ(limits.available_bytes, 100 * kMiB);
}

TEST_F(MachineLimitsTest, MemoryIsLimitedWhereTheKernelSlowsAGroupDown) {
  Write("sys/fs/cgroup/memory.max", "max");
  Write("sys/fs/cgroup/memory.high", "209715200");
  Write("sys/fs/cgroup/memory.current", "104857600");
  EXPECT_EQ(Read().memory_bytes, 200 * kMiB);
  EXPECT_EQ(Read().available_bytes, 100 * kMiB);
  Write("sys/fs/cgroup/memory.max", "157286400");
  EXPECT_EQ(Read().memory_bytes, 150 * kMiB);
  Write("sys/fs/cgroup/memory.high", "max");
  EXPECT_EQ(Read().memory_bytes, 150 * kMiB);
}

TEST_F(MachineLimitsTest, NoLimitIsNone) {
  Write("sys/fs/cgroup/memory.max", "max");
  Write("sys/fs/cgroup/cpu.max", "max 100000");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  const MachineLimits limits = Read();
  EXPECT_EQ(limits.cores, all_cores_);
  EXPECT_FALSE(limits.cores_are_of_container);
  EXPECT_EQ(limits.memory_bytes, 16384 * kMiB);
  EXPECT_FALSE(limits.memory_is_of_container);
}

// A systemd service: its own group has no limit, or a larger one than the slice above it.
TEST_F(MachineLimitsTest, TheLeastOfAllGroupsAboveHolds) {
  Write("proc/self/cgroup", "0::/system.slice/cistern.service");
  Write("sys/fs/cgroup/system.slice/memory.max", "1073741824");
  Write("sys/fs/cgroup/system.slice/memory.current", "1073741824");
  Write("sys/fs/cgroup/system.slice/cistern.service/memory.max", "2147483648");
  Write("sys/fs/cgroup/system.slice/cistern.service/cpu.max", "100000 100000");
  Write("sys/fs/cgroup/other.slice/memory.max", "1");
  const MachineLimits limits = Read();
  EXPECT_EQ(limits.cores, 1);
  EXPECT_EQ(limits.memory_bytes, 1024 * kMiB);
  EXPECT_EQ(limits.available_bytes, 0u);
}

TEST_F(MachineLimitsTest, AQuotaAboveTheAffinityDoesNotAddCores) {
  Write("sys/fs/cgroup/cpu.max", "100000000 100000");
  EXPECT_EQ(Read().cores, all_cores_);
}

}  // namespace
}  // namespace cistern
