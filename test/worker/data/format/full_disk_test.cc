// A disk failure while a data set is written gives a clear error and never an incomplete data set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "test/support/fault_file_system.h"
#include "test/support/temp_folder.h"
#include "test/worker/data/prepare/criteo_fixture.h"
#include "worker/data/format/keyset.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/prepare/generate.h"
#include "worker/data/prepare/synthetic.h"

namespace cistern::data {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// The tests write a data set several hundred times and sync each of its files. Uses a file system
// in memory if possible, to avoid waiting for a disk.
const char* FastFolder() {
  if (fs::is_directory("/dev/shm")) setenv("TEST_TMPDIR", "/dev/shm", /*overwrite=*/1);
  return "out";
}

class FullDisk : public testing::Test {
 protected:
  // Fails every `stride`-th file system call of `write` once, with each fault. write: writes the
  // folder out_.
  void FailEveryCall(const std::function<absl::Status(FileSystem&)>& write, uint64_t stride = 1) {
    ASSERT_EQ(write(faults_), absl::OkStatus());
    const std::vector<std::string> whole = Names();
    ASSERT_FALSE(whole.empty());
    for (const Fault fault : {Fault::kNoSpace, Fault::kShortWrite, Fault::kLostReply}) {
      size_t failed = 0;
      for (uint64_t call = 1;; call += stride) {
        fs::remove_all(out_);
        faults_.FailCall(call, fault);
        const absl::Status status = write(faults_);
        const std::vector<std::string> hits = faults_.hits();
        if (hits.empty()) {
          EXPECT_GT(call, 5u);
          break;
        }
        SCOPED_TRACE(hits[0]);
        // Only a failure after the last rename may leave a data set, and then a complete one.
        if (fs::exists(out_)) {
          ASSERT_EQ(Names(), whole) << status;
        }
        if (status.ok()) continue;
        ++failed;
        if (fault == Fault::kNoSpace) {
          ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
          ASSERT_THAT(std::string(status.message()), HasSubstr("free space there"));
        }
        faults_.FailNothing();
        fs::remove_all(out_);
        ASSERT_EQ(write(faults_), absl::OkStatus());
        ASSERT_EQ(Names(), whole);
      }
      EXPECT_GT(failed, 5u);
      faults_.FailNothing();
    }
    // No temporary files are left.
    for (const auto& entry : fs::directory_iterator(fs::path(out_).parent_path())) {
      EXPECT_EQ(entry.path().string().find("out."), std::string::npos) << entry.path();
    }
  }

  // Paths of all files of the data set.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(out_)) {
      if (entry.is_regular_file()) names.push_back(entry.path());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string name_ = FastFolder();
  Scratch scratch_;
  const std::string out_ = scratch_.Path(name_);
  LocalFileSystem disk_;
  FaultFileSystem faults_{&disk_};
};

class FullDiskOfFormat : public FullDisk, public testing::WithParamInterface<DataFormat> {};
INSTANTIATE_TEST_SUITE_P(Formats, FullDiskOfFormat,
                         testing::Values(DataFormat::kNorm, DataFormat::kRaw
#if CISTERN_HAS_PARQUET
                                         ,
                                         DataFormat::kParquet
#endif
                                         ));

TEST_P(FullDiskOfFormat, GeneratedDataIsCompleteOrAbsent) {
  GenerateOptions options;
  options.out = out_;
  options.data.format = GetParam();
  options.data.shape = {1, 2, {2}, {0}};
  options.data.slot_sizes = {10, 7};
  options.data.float_label_dense = true;
  options.train_samples = 30;
  options.test_samples = 10;
  options.samples_per_file = 20;
  FailEveryCall([&](FileSystem& files) {
    options.files = &files;
    return Generate(options).status();
  });
}

TEST_F(FullDisk, ConvertedDataIsCompleteOrAbsent) {
  ConvertOptions options;
  options.out = out_;
  options.input = {scratch_.Write("in.csv", "label,a\n1,x\n0,y\n1,x\n")};
  options.format = TextFormat::kCsv;
  options.label = {"label"};
  options.sparse = {"a"};
  options.min_count = 2;
  FailEveryCall([&](FileSystem& files) {
    options.files = &files;
    return Convert(options).status();
  });
}

TEST_F(FullDisk, SyntheticDataIsCompleteOrAbsent) {
  SyntheticOptions options;
  options.out = out_;
  options.train_samples = options.test_samples = 20;
  FailEveryCall([&](FileSystem& files) {
    options.files = &files;
    return WriteSynthetic(options).status();
  });
}

TEST_F(FullDisk, CriteoDataIsCompleteOrAbsent) {
  CriteoOptions options = ThreeDays(scratch_);
  options.threads = 1;
  FailEveryCall(
      [&](FileSystem& files) {
        options.files = &files;
        return PrepareCriteo(options, nullptr).status();
      },
      /*stride=*/13);
}

// A single file replaces an older one, which stays until the new one is complete.
TEST_F(FullDisk, AKeysetIsEitherTheOldOrTheNewOne) {
  GenerateOptions data;
  data.out = scratch_.Path("data");
  data.data.format = DataFormat::kNorm;
  data.data.shape = {1, 0, {1}, {0}};
  data.data.slot_sizes = {10};
  data.train_samples = data.test_samples = 20;
  const auto made = Generate(data);
  ASSERT_TRUE(made.ok()) << made.status();
  KeysetOptions options;
  options.data = data.data;
  options.data.slot_sizes.clear();
  options.data.source = made->train_source;
  ASSERT_TRUE(WriteKeyset(disk_, options, out_).ok());
  const std::string keys = ReadBytes(out_);
  for (uint64_t call = 1; call < 100; ++call) {
    fs::remove(out_);
    WriteBytes(out_, "old");
    faults_.FailCall(call, Fault::kShortWrite);
    const auto written = WriteKeyset(faults_, options, out_);
    if (faults_.hits().empty()) {
      EXPECT_GT(call, 4u);
      break;
    }
    // The last call makes the rename durable: if it fails, the new file is there all the same.
    const std::string left = ReadBytes(out_);
    EXPECT_TRUE(left == keys || (left == "old" && !written.ok())) << faults_.hits()[0];
    EXPECT_FALSE(fs::exists(out_ + ".tmp"));
  }
}

}  // namespace
}  // namespace cistern::data
