// What a reader of exported versions holds: base + deltas = a fresh base.
#include <gmock/gmock.h>

#include "common/value/accessor/ctr_accessor.h"
#include "test/support/memory_file_system.h"
#include "test/worker/export/xbox/ctr_fleet.h"
#include "test/worker/export/xbox/sequence_reader.h"
#include "worker/client/after_save.h"
#include "worker/export/xbox/xbox_model.h"

namespace cistern {
namespace {

XboxOptions Options(v1::SaveMode mode, uint64_t now) {
  return {.folder = "/out", .mode = mode, .files = 3, .now = now, .tables = {0}};
}

uint64_t Export(FileSystem& files, CtrFleet& fleet, v1::SaveMode mode, uint64_t now) {
  const auto written = WriteXbox(files, *fleet.model(), Options(mode, now));
  EXPECT_TRUE(written.ok()) << written.status();
  return written.ok() ? written->id : 0;
}

// The delta_score of each row.
std::map<Key, float> DeltaScores(CtrFleet& fleet) {
  std::map<Key, float> scores;
  EXPECT_TRUE(fleet.model()
                  ->Scan(0,
                         [&](uint32_t, Key key, const float* value, bool) {
                           scores[key] = value[CtrCells::kDeltaScore];
                           return absl::OkStatus();
                         })
                  .ok());
  return scores;
}

// Trains and exports deltas at random; some of them are killed after their files, before the
// servers reset the statistics. Returns what a reader holds.
XboxRows ServedAfter(CtrFleet& fleet, FileSystem& files, int steps) {
  XboxRows served;
  fleet.Train(100);
  Export(files, fleet, v1::BASE, 1000);
  ApplyLast(files, "/out/donefile/base.txt", &served);
  EXPECT_TRUE(UpdateAfterSave(fleet.client(), v1::BASE, 0).ok());
  for (int step = 1; step <= steps; ++step) {
    for (uint64_t passes = fleet.Draw(4); passes > 0; --passes) fleet.Train(1 + fleet.Draw(60));
    Export(files, fleet, v1::DELTA, 1000 + static_cast<uint64_t>(step));
    ApplyLast(files, "/out/donefile/patch.txt", &served);
    if (step < steps && fleet.Draw(3) == 0) continue;  // killed
    EXPECT_TRUE(UpdateAfterSave(fleet.client(), v1::DELTA, 0).ok());
  }
  return served;
}

class XboxDeltas : public testing::TestWithParam<uint64_t> {};

TEST_P(XboxDeltas, BaseAndDeltasAreAFreshBaseExceptForSmallChanges) {
  CtrFleet fleet(GetParam(), /*delta_threshold=*/1);
  MemoryFileSystem files;
  const XboxRows served = ServedAfter(fleet, files, 8);
  XboxRows fresh;
  Export(files, fleet, v1::BASE, 2000);
  ApplyLast(files, "/out/donefile/base.txt", &fresh);
  const std::map<Key, float> scores = DeltaScores(fleet);
  size_t stale = 0;
  for (const auto& [key, value] : fresh) {
    const float score = scores.at(key);
    EXPECT_LT(score, 1) << key;
    if (score != 0) {
      ++stale;
      continue;
    }
    ASSERT_TRUE(served.contains(key)) << key;
    EXPECT_EQ(served.at(key), value) << key;
  }
  EXPECT_GT(stale, 0u);
  EXPECT_LT(stale, fresh.size() / 2);
  for (const auto& [key, value] : served) EXPECT_TRUE(fresh.contains(key)) << key;
}

TEST_P(XboxDeltas, WithADeltaThresholdOfZeroTheyAreEqual) {
  CtrFleet fleet(GetParam(), /*delta_threshold=*/0);
  MemoryFileSystem files;
  const XboxRows served = ServedAfter(fleet, files, 5);
  XboxRows fresh;
  Export(files, fleet, v1::BASE, 2000);
  ApplyLast(files, "/out/donefile/base.txt", &fresh);
  EXPECT_GT(fresh.size(), 50u);
  EXPECT_TRUE(served == fresh);
}

INSTANTIATE_TEST_SUITE_P(Seeds, XboxDeltas, testing::Range<uint64_t>(1, 9));

TEST(XboxModel, ARetryWithoutAResetExportsTheSameRows) {
  CtrFleet fleet(3);
  MemoryFileSystem files;
  fleet.Train(150);
  Export(files, fleet, v1::BASE, 1000);
  XboxRows first, second;
  Export(files, fleet, v1::DELTA, 1001);
  ApplyLast(files, "/out/donefile/patch.txt", &first);
  Export(files, fleet, v1::DELTA, 1001);
  ApplyLast(files, "/out/donefile/patch.txt", &second);
  EXPECT_FALSE(first.empty());
  EXPECT_TRUE(first == second);
  ASSERT_TRUE(UpdateAfterSave(fleet.client(), v1::DELTA, 0).ok());
  XboxRows nothing;
  Export(files, fleet, v1::DELTA, 1001);
  ApplyLast(files, "/out/donefile/patch.txt", &nothing);
  EXPECT_TRUE(nothing.empty());
}

TEST(XboxModel, IdsGrowEvenIfTheClockGoesBack) {
  CtrFleet fleet(3);
  MemoryFileSystem files;
  fleet.Train(20);
  EXPECT_EQ(Export(files, fleet, v1::BASE, 1000), 1000u);
  EXPECT_EQ(Export(files, fleet, v1::DELTA, 1000), 1001u);
  EXPECT_EQ(Export(files, fleet, v1::BASE, 900), 1002u);
  ASSERT_TRUE(files.MakeFolders("/out/5000").ok());  // of an export killed before its line
  EXPECT_EQ(Export(files, fleet, v1::DELTA, 900), 5001u);
  EXPECT_EQ(LastDone(files, "/out/donefile/patch.txt").value()->key, 1002u);
}

TEST(XboxModel, ADeltaWithoutABaseIsRefused) {
  CtrFleet fleet(3);
  MemoryFileSystem files;
  fleet.Train(20);
  const absl::Status status = WriteXbox(files, *fleet.model(), Options(v1::DELTA, 1000)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("names no base"));
}

TEST(XboxModel, TwoExportsToOneFolderAreRefused) {
  CtrFleet fleet(3);
  MemoryFileSystem files;
  fleet.Train(20);
  ASSERT_TRUE(files.MakeFolders("/out").ok());
  const auto lock = files.Lock("/out/.lock").value();
  EXPECT_EQ(WriteXbox(files, *fleet.model(), Options(v1::BASE, 1000)).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(XboxModel, ACommitDuringTheExportIsNoticed) {
  CtrFleet fleet(3);
  MemoryFileSystem files;
  fleet.Train(20);
  const auto model = fleet.model();
  fleet.Train(20);
  EXPECT_EQ(WriteXbox(files, *model, Options(v1::BASE, 1000)).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(files.List("/out").value(), std::vector<std::string>{".lock"});
}

TEST(XboxModel, SeveralTablesAreSeveralDictionaries) {
  EmbeddedFleet servers(1);
  const auto client = Writer(servers.Links());
  ASSERT_TRUE(CommitKeys(*client, TestKeys(50)).ok());
  MemoryFileSystem files;
  XboxOptions options = Options(v1::BASE, 1000);
  options.tables = {kCtr, kDeep};
  const auto written = WriteXbox(files, *CommittedModelOf(*client, "servers"), options);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->tables[1].folder, "/out/deep/1000");
  XboxRows rows;
  ApplyLast(files, "/out/deep/donefile/base.txt", &rows);
  EXPECT_EQ(rows.size(), 50u);
  rows.clear();
  ApplyLast(files, "/out/ctr/donefile/base.txt", &rows);
  EXPECT_EQ(rows.size(), 0u);
  options.mode = v1::DELTA;
  EXPECT_EQ(WriteXbox(files, *CommittedModelOf(*client, "servers"), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cistern
