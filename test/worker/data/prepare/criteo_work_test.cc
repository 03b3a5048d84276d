// DLRM's preparation of Criteo's logs: many threads, killed runs and bad lines.
#include "worker/data/prepare/criteo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "common/io/gzip.h"
#include "test/support/fault_file_system.h"
#include "test/support/temp_folder.h"
#include "test/worker/data/prepare/criteo_fixture.h"
#include "worker/data/prepare/criteo_ids.h"
#include "worker/data/prepare/work_folder.h"

namespace cistern::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Days with values that repeat within and between blocks.
CriteoOptions ManyLines(const Scratch& scratch, int lines) {
  std::mt19937 random(3);
  std::vector<std::string> days(3);
  for (std::string& day : days) {
    for (int i = 0; i < lines; ++i) {
      day += Line(random() % 4 == 0, absl::StrCat(static_cast<int>(random() % 50) - 3),
                  absl::StrCat(absl::Hex(random() % 400)), absl::StrCat(absl::Hex(random() % 20)));
    }
  }
  CriteoOptions options = Options(scratch, days);
  options.shuffle = true;
  options.crosses = {{0, 1}};
  options.min_count = 3;
  options.dense = CriteoDense::kMinMax;
  return options;
}

// All files below a folder, by name.
std::map<std::string, std::string> FilesOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder)] = {std::istreambuf_iterator<char>(file),
                                                              {}};
  }
  return files;
}

// A few KB that decompress to a few MB; a larger file could fill the disk.
TEST(CriteoWork, RefusesADayThatDecompressesBeyondItsLimits) {
  const Scratch scratch;
  CriteoOptions options = ThreeDays(scratch);
  std::string packed;
  GzipWriter gzip;
  gzip.Append(std::string(4 << 20, '0'), &packed);
  gzip.Finish(&packed);
  options.days[1] = scratch.Write("bomb.gz", packed);
  const std::string ratio = ErrorOf(options, absl::StatusCode::kDataLoss);
  EXPECT_NE(ratio.find(options.days[1] + ": it decompressed to "), std::string::npos) << ratio;
  EXPECT_NE(ratio.find("allow a higher ratio"), std::string::npos) << ratio;
  options.gzip_max_ratio = 2000;
  options.gzip_max_mb = 2;
  const std::string most = ErrorOf(options, absl::StatusCode::kDataLoss);
  EXPECT_NE(most.find("allow more"), std::string::npos) << most;
}

TEST(CriteoWork, GzipDaysGiveTheSameOutputAsTheirText) {
  Scratch scratch;
  CriteoOptions options = ManyLines(scratch, 300);
  ASSERT_TRUE(PrepareCriteo(options, nullptr).ok());
  const auto expected = FilesOf(options.out);
  for (std::string& day : options.days) {
    std::string packed;
    GzipWriter gzip;
    gzip.Append(scratch.Read(std::filesystem::path(day).filename()), &packed);
    gzip.Finish(&packed);
    day = scratch.Write(std::filesystem::path(day).filename().string() + ".gz", packed);
  }
  options.out = scratch.Path("packed");
  const auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(FilesOf(options.out), expected);
  EXPECT_FALSE(std::filesystem::exists(options.out + ".partial"));

  options.out = scratch.Path("bad");
  scratch.Write("day_1.gz", scratch.Read("day_1.gz").substr(0, 200));
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kDataLoss), HasSubstr("day_1.gz"));
  EXPECT_FALSE(std::filesystem::exists(options.out + ".partial"));
}

TEST(Criteo, OutputDoesNotDependOnThreadsOrBlocks) {
  Scratch scratch;
  CriteoOptions options = ManyLines(scratch, 40);
  options.threads = 1;
  ASSERT_TRUE(PrepareCriteo(options, nullptr).ok());
  const auto expected = FilesOf(options.out);
  EXPECT_GT(expected.size(), 30u);
  options.overwrite = true;
  // Blocks of many lines, and of one line or none.
  for (const auto& [threads, block_bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{{1, 3000}, {5, 3000}, {3, 60}}) {
    options.threads = threads;
    options.block_bytes = block_bytes;
    const auto summary = PrepareCriteo(options, nullptr);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_TRUE(FilesOf(options.out) == expected) << threads << " " << block_bytes;
    EXPECT_FALSE(summary->resumed);
  }
}

// The values files of several blocks of a day with about 3100 distinct values in the first column.
std::vector<std::string> BlockValues(const Scratch& scratch) {
  std::mt19937 random(5);
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    text += Line(0, "1", absl::StrCat(absl::Hex(random() % 4000)), "2");
  }
  const auto day = MappedFile::Open(scratch.Write("day", text));
  EXPECT_TRUE(day.ok());
  std::vector<std::string> values;
  for (uint64_t begin = 0; begin < text.size(); begin += 60000) {
    values.push_back(scratch.Path(absl::StrCat("values-", begin)));
    EXPECT_TRUE(ReadCriteoBlock(Disk(), **day,
                                {0, begin, std::min<uint64_t>(begin + 60000, text.size())},
                                CriteoDense::kLog3, {}, scratch.Path("rows"), values.back())
                    .ok());
  }
  EXPECT_GT(values.size(), 5u);
  return values;
}

TEST(Criteo, IdsDoNotDependOnPortions) {
  Scratch scratch;
  const std::vector<std::string> values = BlockValues(scratch);
  CriteoIdOptions options;
  options.min_count = 2;
  const auto at_once =
      MakeCriteoIds(Disk(), 0, values, options, scratch.Path("map-1"), scratch.Path("ids-1"));
  options.memory_bytes = 10000;  // the distinct values need 20 times that
  const auto in_portions =
      MakeCriteoIds(Disk(), 0, values, options, scratch.Path("map-2"), scratch.Path("ids-2"));
  ASSERT_TRUE(at_once.ok() && in_portions.ok()) << in_portions.status();
  EXPECT_GT(*at_once, 1000u);
  EXPECT_EQ(*at_once, *in_portions);
  EXPECT_TRUE(scratch.Read("map-1") == scratch.Read("map-2"));
  EXPECT_TRUE(scratch.Read("ids-1") == scratch.Read("ids-2"));
}

// Uses several portions, so that each one reads the file of the portion before.
TEST(Criteo, IdsAreCompleteOrAnError) {
  Scratch scratch;
  const std::vector<std::string> values = BlockValues(scratch);
  CriteoIdOptions options;
  options.memory_bytes = 100000;
  const std::string map = scratch.Path("map"), ids = scratch.Path("ids");
  ASSERT_TRUE(MakeCriteoIds(Disk(), 0, values, options, map, ids).ok());
  const std::string whole_map = scratch.Read("map"), whole_ids = scratch.Read("ids");
  LocalFileSystem disk;
  FaultFileSystem faults(&disk);
  for (const Fault fault : {Fault::kNoSpace, Fault::kShortWrite, Fault::kLostReply}) {
    size_t failed = 0;
    for (uint64_t call = 1;; ++call) {
      faults.FailCall(call, fault);
      const auto made = MakeCriteoIds(faults, 0, values, options, map, ids);
      if (faults.hits().empty()) break;
      failed += !made.ok();
      if (!made.ok()) continue;  // the caller starts over and ignores the files of this run
      EXPECT_TRUE(scratch.Read("map") == whole_map) << faults.hits()[0];
      EXPECT_TRUE(scratch.Read("ids") == whole_ids) << faults.hits()[0];
    }
    EXPECT_GT(failed, 20u);
    EXPECT_TRUE(scratch.Read("map") == whole_map && scratch.Read("ids") == whole_ids);
  }
}

// Stops at the first progress call, then at the second, and so on. Each call resumes the one
// before, and the final output equals that of an uninterrupted run.
TEST(Criteo, AStoppedRunResumes) {
  Scratch scratch;
  CriteoOptions options = ManyLines(scratch, 300);
  options.block_bytes = 12000;
  options.threads = 2;
  ASSERT_TRUE(PrepareCriteo(options, nullptr).ok());
  const auto expected = FilesOf(options.out);
  std::filesystem::remove_all(options.out);
  int stops = 0;
  for (;; ++stops) {
    ASSERT_LT(stops, 1000);
    int moments = 0;
    const auto summary = PrepareCriteo(options, [&](uint64_t) { return ++moments <= stops; });
    if (summary.ok()) {
      EXPECT_TRUE(summary->resumed);
      break;
    }
    EXPECT_EQ(summary.status().code(), absl::StatusCode::kCancelled);
    EXPECT_FALSE(std::filesystem::exists(options.out));
    EXPECT_TRUE(std::filesystem::exists(options.out + ".partial/plan"));
  }
  EXPECT_GT(stops, 10);
  EXPECT_TRUE(FilesOf(options.out) == expected);
  EXPECT_FALSE(std::filesystem::exists(options.out + ".partial"));
}

// The files of a stopped run were changed. The next run may fail, but must not read beyond them,
// which the sanitizers of the preset asan check.
TEST(CriteoWork, SurvivesChangesOfItsFiles) {
  Scratch scratch;
  CriteoOptions options = ManyLines(scratch, 40);
  options.block_bytes = 3000;
  options.threads = 2;
  const std::string partial = options.out + ".partial", kept = scratch.Path("kept");
  std::mt19937 random(9);
  int refused = 0;
  for (const int stop : {8, 20, 35}) {
    const auto stopped =
        PrepareCriteo(options, [moments = 0, stop](uint64_t) mutable { return ++moments < stop; });
    ASSERT_EQ(stopped.status().code(), absl::StatusCode::kCancelled) << stop;
    std::filesystem::copy(partial, kept);
    std::vector<std::string> names;
    for (const auto& [name, bytes] : FilesOf(kept)) {
      if (name != "plan" && !bytes.empty()) names.push_back(name);
    }
    for (int change = 0; change < 7; ++change) {
      std::filesystem::remove_all(partial);
      std::filesystem::copy(kept, partial);
      const std::string path = partial + "/" + names[random() % names.size()];
      const uint64_t size = std::filesystem::file_size(path);
      if (change % 5 == 0) {
        std::filesystem::resize_file(path, random() % size);
      } else {
        const uint64_t lie = change % 2 == 0 ? ~uint64_t{0} : random();
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(change % 3 == 0 ? 0 : random() % size));
        file.write(reinterpret_cast<const char*>(&lie), 1 + random() % 8);
      }
      refused += !PrepareCriteo(options, nullptr).ok();
      std::filesystem::remove_all(options.out);
    }
    std::filesystem::remove_all(partial);
    std::filesystem::remove_all(kept);
  }
  EXPECT_GT(refused, 0);
}

TEST(Criteo, OtherOptionsOrDaysStartOver) {
  Scratch scratch;
  CriteoOptions options = ManyLines(scratch, 300);
  options.block_bytes = 12000;
  const auto stop_late = [moments = 0](uint64_t) mutable { return ++moments < 30; };
  EXPECT_FALSE(PrepareCriteo(options, stop_late).ok());
  EXPECT_TRUE(std::filesystem::exists(options.out + ".partial/values-3"));
  options.min_count = 1;
  auto summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_FALSE(summary->resumed);
  const auto expected = FilesOf(options.out);

  options.overwrite = true;
  EXPECT_FALSE(PrepareCriteo(options, stop_late).ok());
  scratch.Write("day_0", Line(1, "0", "abc", "def"));
  summary = PrepareCriteo(options, nullptr);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_FALSE(summary->resumed);
  EXPECT_EQ(summary->train_samples, 301u);
}

TEST(Criteo, OnlyOneProcessWorksInAFolder) {
  Scratch scratch;
  const CriteoOptions options = ThreeDays(scratch);
  {
    const auto other = WorkFolder::Open(Disk(), options.out, "another plan");
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument),
                HasSubstr("another process is working in"));
    EXPECT_TRUE(std::filesystem::exists((*other)->Path("plan")));
  }
  EXPECT_TRUE(PrepareCriteo(options, nullptr).ok());
}

TEST(Criteo, ReportsTheFirstBadLineWithSeveralThreads) {
  Scratch scratch;
  std::string day;
  for (int i = 0; i < 200; ++i) day += Line(0, "1", "2", i % 50 == 33 ? "xyz" : "3");
  CriteoOptions options = Options(scratch, {day, Line(0, "1", "2", "3")});
  options.threads = 4;
  options.block_bytes = 1000;
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(ErrorOf(options, absl::StatusCode::kDataLoss), HasSubstr("line 34: column C2"));
    EXPECT_FALSE(std::filesystem::exists(options.out + ".partial"));
  }
}

TEST(Criteo, ErrorsNameBadLinesAndLeaveNoOutput) {
  Scratch scratch;
  const std::string good = Line(1, "0", "1", "2");
  const auto error = [&](const std::string& bad) {
    return ErrorOf(Options(scratch, {good + good + bad, good}), absl::StatusCode::kDataLoss);
  };
  EXPECT_THAT(error(Line(0, "x", "1", "2")),
              AllOf(HasSubstr("day_0"), HasSubstr("line 3"),
                    HasSubstr("column I1 'x' is not a whole number")));
  EXPECT_THAT(error(Line(0, "1", "1", "xyz")), HasSubstr("column C2 'xyz' is not a hexadecimal"));
  EXPECT_THAT(error("1\t2\t3\n"), HasSubstr("has 3 fields"));
  EXPECT_THAT(error(good.substr(0, good.size() - 1) + "\t1\n"), HasSubstr("more fields"));
  CriteoOptions options = Options(scratch, {good});
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument), HasSubstr("at least two"));
  options.days.push_back(scratch.Path("absent"));
  EXPECT_THAT(ErrorOf(options, absl::StatusCode::kInvalidArgument), HasSubstr("absent"));
}

}  // namespace
}  // namespace cistern::data
