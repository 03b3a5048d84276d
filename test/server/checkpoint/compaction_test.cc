#include "server/checkpoint/compaction.h"

#include <gmock/gmock.h>

#include <map>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/value/row_digest.h"
#include "test/server/checkpoint/row_file_sample.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

constexpr char kFolder[] = "/state/data";
constexpr uint32_t kShards = 4;

using Rows = std::map<Key, float>;  // the first cell of a row of table "deep"; the others are 0

v1::Schema DeepOnly() {
  v1::Schema schema;
  *schema.add_tables() = SampleSchema().tables(0);
  return schema;
}

class CompactionTest : public testing::Test {
 protected:
  CompactionTest() : layout_(SampleLayout(0)) { EXPECT_TRUE(files_.MakeFolders(kFolder).ok()); }

  // A file of server 0 of 1 that holds `rows`, and records that the table is `after`.
  v1::RowFile Write(uint64_t commit, bool base, const Rows& rows, const Rows& after) {
    const std::string name = absl::StrCat(base ? "base-" : "delta-", commit);
    const auto writer = RowFileWriter::Create(files_, kFolder, name, Header(commit, base)).value();
    for (ShardIndex shard = 0; shard < kShards; ++shard) {
      RowSection section;
      section.shard = shard;
      section.stride = layout_.full_floats();
      EXPECT_TRUE(writer->BeginSection(section).ok());
      RowBlockBuilder builder(&layout_);
      for (const auto& [key, cell] : rows) {
        if (key % kShards == shard) builder.Add(key, Value(cell).data(), true);
      }
      EXPECT_TRUE(writer->Append(builder.Take(true)).ok());
      RowDigest digest(layout_);
      uint64_t count = 0, sum = 0;
      for (const auto& [key, cell] : after) {
        if (key % kShards != shard) continue;
        ++count;
        sum += digest(key, Value(cell).data(), true);
      }
      EXPECT_TRUE(writer->EndSection(count, sum).ok());
    }
    return writer->Finish().value();
  }

  MergePlan PlanOf(std::vector<v1::RowFile> files) {
    return {.folder = kFolder,
            .name = "merged",
            .header = Header(files.back().commit(), true),
            .map = ShardMap::Create(kShards, 1).value(),
            .schema = DeepOnly(),
            .files = std::move(files),
            .open = {}};
  }

  Rows Read(const v1::RowFile& file) {
    const auto reader = RowFileReader::Open(files_, kFolder, file).value();
    Rows rows;
    for (const RowSection& section : reader->sections()) {
      const auto read = ReadSparseRows(*reader, section, layout_);
      EXPECT_TRUE(read.ok()) << read.status();
      if (!read.ok()) continue;
      for (const auto& [key, value, has_embedx] : *read) rows[key] = value[0];
    }
    return rows;
  }

  MemoryFileSystem files_;

 private:
  static RowFileHeader Header(uint64_t commit, bool base) {
    RowFileHeader header = SampleHeader();
    header.base = base;
    header.server = 0;
    header.server_num = 1;
    header.shard_num = kShards;
    header.commit = commit;
    return header;
  }
  std::vector<float> Value(float cell) const {
    std::vector<float> value(layout_.full_floats());
    value[0] = cell;
    return value;
  }

  const ValueLayout layout_;
};

const auto kNeverStop = [] { return false; };

TEST_F(CompactionTest, MergedBaseHoldsTheNewestOfEachRow) {
  const Rows first = {{0, 1}, {1, 2}, {2, 3}, {9, 4}};
  const Rows second = {{0, 1}, {1, 20}, {2, 3}, {7, 5}, {9, 4}};
  const Rows third = {{0, 1}, {1, 20}, {2, 3}, {7, 50}, {9, 40}};
  const absl::StatusOr<v1::RowFile> merged = MergeRowFiles(
      files_,
      PlanOf({Write(1, true, first, first), Write(2, false, {{1, 20}, {7, 5}}, second),
              Write(3, false, {{7, 50}, {9, 40}}, third)}),
      kNeverStop);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(Read(*merged), third);
  EXPECT_EQ(merged->commit(), 3u);
}

TEST_F(CompactionTest, RowsThatDoNotAddUpToTheDigestMakeNoBase) {
  const Rows first = {{0, 1}, {1, 2}}, claimed = {{0, 1}, {1, 2}, {5, 3}};
  const absl::StatusOr<v1::RowFile> merged = MergeRowFiles(
      files_, PlanOf({Write(1, true, first, first), Write(2, false, {}, claimed)}), kNeverStop);
  EXPECT_EQ(merged.status().code(), absl::StatusCode::kDataLoss) << merged.status();
  EXPECT_THAT(std::string(merged.status().message()), testing::HasSubstr("table 'deep', shard 1"));
}

TEST_F(CompactionTest, ResultStaysUntilItIsDropped) {
  const Rows rows = {{0, 1}, {3, 2}};
  Compaction compaction;
  ASSERT_TRUE(compaction.Start(&files_, PlanOf({Write(1, true, rows, rows)})));
  EXPECT_EQ(compaction.file_name(), "merged");
  compaction.AwaitIdle();
  ASSERT_TRUE(compaction.result().has_value());
  EXPECT_EQ(Read(*compaction.result()), rows);
  EXPECT_FALSE(compaction.Start(&files_, PlanOf({Write(2, true, rows, rows)})));
  compaction.Drop();
  EXPECT_FALSE(compaction.result().has_value());
  EXPECT_EQ(compaction.file_name(), "");
}

TEST_F(CompactionTest, FilesThatAreOpenAreNotOpenedAgain) {
  const Rows rows = {{0, 1}, {4, 2}};
  MergePlan plan = PlanOf({Write(1, true, rows, rows)});
  plan.open["base-1"] = RowFileReader::Open(files_, kFolder, plan.files[0]).value();
  ASSERT_TRUE(files_.Remove(absl::StrCat(kFolder, "/base-1")).ok());  // an open file stays
  const auto merged = MergeRowFiles(files_, plan, [] { return false; });
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(Read(*merged), rows);
}

// Deltas that share the memory for what is read ahead.
TEST_F(CompactionTest, ManyDeltasAreMerged) {
  Rows rows;
  for (Key key = 0; key < 2000; ++key) rows[key] = 1;
  std::vector<v1::RowFile> files = {Write(1, true, rows, rows)};
  for (uint64_t commit = 2; commit < 200; ++commit) {
    Rows changed;
    for (Key key = commit; key < 2000; key += 97) changed[key] = static_cast<float>(commit);
    for (const auto& [key, value] : changed) rows[key] = value;
    files.push_back(Write(commit, false, changed, rows));
  }
  const auto merged = MergeRowFiles(files_, PlanOf(files), [] { return false; });
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(Read(*merged), rows);
}

TEST_F(CompactionTest, FailedMergeLeavesNoResult) {
  const Rows rows = {{0, 1}};
  MergePlan plan = PlanOf({Write(1, true, rows, rows)});
  ASSERT_TRUE(files_.Remove(absl::StrCat(kFolder, "/base-1")).ok());
  Compaction compaction;
  ASSERT_TRUE(compaction.Start(&files_, std::move(plan)));
  compaction.AwaitIdle();
  EXPECT_FALSE(compaction.result().has_value());
  EXPECT_EQ(compaction.file_name(), "");
}

TEST(HoldsRowsOf, AnotherNumberOfServersMayHoldRowsOfAny) {
  v1::RowFile file;
  file.set_server(1);
  file.set_server_num(2);
  EXPECT_TRUE(HoldsRowsOf(file, ShardMap::Create(4, 2).value(), 1));
  EXPECT_FALSE(HoldsRowsOf(file, ShardMap::Create(4, 2).value(), 0));
  EXPECT_TRUE(HoldsRowsOf(file, ShardMap::Create(4, 3).value(), 0));
}

}  // namespace
}  // namespace cistern::server
