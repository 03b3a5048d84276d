// Row files: round trips, and what a writer leaves on disk.
#include "server/checkpoint/row_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/server/checkpoint/row_file_sample.h"
#include "test/support/fault_file_system.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

using ::testing::HasSubstr;
using Loss = MemoryFileSystem::Loss;

class RowFiles : public testing::Test {
 protected:
  RowFiles() { EXPECT_TRUE(files_.MakeFolders("data").ok()); }

  MemoryFileSystem files_;
};

TEST_F(RowFiles, ReadsBackWhatWasWritten) {
  const v1::RowFile file = WriteSample(files_, "data", "delta-1").value();
  EXPECT_EQ(file.name(), "delta-1");
  EXPECT_FALSE(file.base());
  EXPECT_EQ(file.server(), 1u);
  EXPECT_EQ(file.server_num(), 2u);
  EXPECT_EQ(file.commit(), 7u);
  EXPECT_EQ(file.epoch(), 3u);
  EXPECT_EQ(file.rows(), 5u + 6 + 6 + 4);
  EXPECT_EQ(file.bytes(), ReadWhole(files_, "data/delta-1", 1 << 20).value().size());

  const auto reader = RowFileReader::Open(files_, "data", file).value();
  EXPECT_EQ(reader->header().cluster_id, 0x1122334455667788u);
  EXPECT_EQ(reader->header().schema_hash, 0x99aabbccddeeff00u);
  EXPECT_EQ(reader->header().shard_num, 4u);
  ASSERT_EQ(reader->sections().size(), 5u);
  for (TableId table = 0; table < 2; ++table) {
    const ValueLayout layout = SampleLayout(table);
    for (const ShardIndex shard : {1u, 3u}) {
      const RowSection* section = reader->FindSparse(table, shard);
      ASSERT_NE(section, nullptr);
      EXPECT_EQ(section->total_rows, 100u);
      EXPECT_EQ(section->digest, 1000 + table * 10 + shard);
      const auto rows = ReadSparseRows(*reader, *section, layout);
      ASSERT_TRUE(rows.ok()) << rows.status();
      EXPECT_EQ(*rows, SampleRows(layout, shard, table == 0 && shard == 3 ? 0 : 5 + table));
    }
  }
  EXPECT_EQ(reader->FindSparse(0, 0), nullptr);
  EXPECT_EQ(reader->FindSparse(2, 1), nullptr);
  std::vector<float> cells;
  EXPECT_EQ(reader->sections()[4].begin, 5u);
  ASSERT_TRUE(reader->ReadDense(reader->sections()[4], &cells).ok());
  EXPECT_EQ(cells, SampleCells());
  EXPECT_TRUE(reader->Verify().ok());
}

TEST_F(RowFiles, RowsFillManyBlocks) {
  const auto writer = RowFileWriter::Create(files_, "data", "base-1", SampleHeader()).value();
  std::vector<std::vector<SparseRow>> written;
  for (TableId table = 0; table < 2; ++table) {
    const ValueLayout layout = SampleLayout(table);
    written.push_back(SampleRows(layout, 1, 20000));
    ASSERT_TRUE(WriteSparse(*writer, table, 1, layout, written.back(), 20000).ok());
  }
  std::vector<float> cells(50000);
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<float>(i);
  ASSERT_TRUE(WriteDense(*writer, 0, 0, 2, cells, 25000).ok());
  const v1::RowFile file = writer->Finish().value();

  const auto reader = RowFileReader::Open(files_, "data", file).value();
  for (TableId table = 0; table < 2; ++table) {
    const RowSection* section = reader->FindSparse(table, 1);
    EXPECT_GT(section->block_num, 5u);
    const auto rows = ReadSparseRows(*reader, *section, SampleLayout(table));
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(*rows, written[table]);
  }
  std::vector<float> read;
  ASSERT_TRUE(reader->ReadDense(reader->sections()[2], &read).ok());
  EXPECT_EQ(read, cells);
  EXPECT_TRUE(reader->Verify().ok());
}

TEST_F(RowFiles, ARowLargerThanABlockHasItsOwnBlock) {
  constexpr uint32_t kColumns = 40000;  // 160 KB per row
  const auto writer = RowFileWriter::Create(files_, "data", "base-1", SampleHeader()).value();
  std::vector<float> cells(3 * kColumns);
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<float>(i);
  ASSERT_TRUE(WriteDense(*writer, 0, 0, kColumns, cells, 3).ok());
  const v1::RowFile file = writer->Finish().value();
  const auto reader = RowFileReader::Open(files_, "data", file).value();
  EXPECT_EQ(reader->sections()[0].block_num, 3u);
  std::vector<float> read;
  ASSERT_TRUE(reader->ReadDense(reader->sections()[0], &read).ok());
  EXPECT_EQ(read, cells);
}

// Every second row is removed; without their cells many more fit a block than rows that have some.
TEST_F(RowFiles, ADeltaMayRemoveRows) {
  RowFileHeader header = SampleHeader();
  header.removals = true;
  for (const bool indexed : {false, true}) {
    header.indexed = indexed;
    const std::string name = indexed ? "delta-2" : "delta-1";
    const auto writer = RowFileWriter::Create(files_, "data", name, header).value();
    const ValueLayout layout = SampleLayout(1);
    const std::vector<SparseRow> rows = SampleRows(layout, 1, 20000);
    const auto is_removed = [](size_t i) { return i % 2 == 0 || i > 1000; };
    RowSection section;
    section.table = 1;
    section.shard = 1;
    section.stride = layout.full_floats();
    ASSERT_TRUE(writer->BeginSection(section).ok());
    RowBlockBuilder builder(&layout);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& [key, value, has_embedx] = rows[i];
      if (is_removed(i)) {
        builder.AddRemoved(key);
      } else {
        builder.Add(key, value.data(), has_embedx);
      }
    }
    ASSERT_TRUE(writer->Append(builder.Take(true)).ok());
    ASSERT_TRUE(writer->EndSection(/*total_rows=*/10, /*digest=*/4).ok());
    const v1::RowFile file = writer->Finish().value();
    const auto reader = RowFileReader::Open(files_, "data", file).value();
    EXPECT_TRUE(reader->header().removals);
    ASSERT_TRUE(reader->Verify().ok());
    RowFileReader::Cursor row = reader->Walk(reader->sections()[0], layout);
    size_t at = 0;
    for (; row.Next().value(); ++at) {
      const auto& [key, value, has_embedx] = rows[at];
      ASSERT_EQ(row.key(), key);
      ASSERT_EQ(row.is_removed(), is_removed(at));
      if (is_removed(at)) continue;
      ASSERT_EQ(row.has_embedx(), has_embedx);
      ASSERT_EQ(std::vector<float>(row.value(), row.value() + layout.full_floats()), value);
    }
    EXPECT_EQ(at, rows.size());
    at = 0;
    ASSERT_TRUE(reader
                    ->ReadSparse(reader->sections()[0], layout,
                                 [&](const ValueBlock& block) {
                                   for (size_t i = 0; i < block.keys.size(); ++i, ++at) {
                                     EXPECT_EQ(block.has_embedx[i], is_removed(at) ? kRemovedRow
                                                                    : std::get<2>(rows[at]) ? 1
                                                                                            : 0);
                                   }
                                   return absl::OkStatus();
                                 })
                    .ok());
    EXPECT_EQ(at, rows.size());
  }
}

TEST_F(RowFiles, OnlyADeltaWithRemovalsRemovesRows) {
  const ValueLayout layout = SampleLayout(0);
  const auto write = [&](const std::string& name, const RowFileHeader& header, uint64_t total) {
    const auto writer = RowFileWriter::Create(files_, "data", name, header).value();
    RowSection section;
    section.shard = 1;
    section.stride = layout.full_floats();
    EXPECT_TRUE(writer->BeginSection(section).ok());
    RowBlockBuilder builder(&layout);
    builder.AddRemoved(1);
    EXPECT_TRUE(writer->Append(builder.Take(true)).ok());
    EXPECT_TRUE(writer->EndSection(total, 0).ok());
    return writer->Finish();
  };
  const v1::RowFile plain = write("delta-1", SampleHeader(), 1).value();
  const auto reader = RowFileReader::Open(files_, "data", plain).value();
  EXPECT_THAT(std::string(reader->Verify().message()), HasSubstr("its flag is 2"));
  RowFileHeader base = SampleHeader();
  base.base = base.removals = true;
  EXPECT_EQ(write("base-1", base, 1).status().code(), absl::StatusCode::kInternal);
  // Without removals a file has no more rows than its shard.
  EXPECT_EQ(write("delta-2", SampleHeader(), 0).status().code(), absl::StatusCode::kInternal);
  RowFileHeader removals = SampleHeader();
  removals.removals = true;
  EXPECT_TRUE(write("delta-3", removals, 0).ok());
}

TEST_F(RowFiles, ABaseHoldsAllRowsOfItsSections) {
  RowFileHeader header = SampleHeader();
  header.base = true;
  const v1::RowFile file = WriteSample(files_, "data", "base-1", header).value();
  EXPECT_TRUE(file.base());
  EXPECT_TRUE(RowFileReader::Open(files_, "data", file).value()->header().base);

  const auto writer = RowFileWriter::Create(files_, "data", "base-2", header).value();
  const ValueLayout layout = SampleLayout(0);
  ASSERT_TRUE(WriteSparse(*writer, 0, 1, layout, SampleRows(layout, 1, 3), 4).ok());
  const absl::Status status = writer->Finish().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("data/base-2"));
}

TEST_F(RowFiles, AFileMayHaveNoSections) {
  const auto writer = RowFileWriter::Create(files_, "data", "delta-1", SampleHeader()).value();
  const v1::RowFile file = writer->Finish().value();
  EXPECT_EQ(file.rows(), 0u);
  const auto reader = RowFileReader::Open(files_, "data", file).value();
  EXPECT_TRUE(reader->sections().empty());
  EXPECT_TRUE(reader->Verify().ok());
}

TEST_F(RowFiles, AnErrorOfTheVisitorEndsTheRead) {
  const ValueLayout layout = SampleLayout(0);
  const auto writer = RowFileWriter::Create(files_, "data", "base-1", SampleHeader()).value();
  ASSERT_TRUE(WriteSparse(*writer, 0, 1, layout, SampleRows(layout, 1, 20000), 20000).ok());
  const auto reader = RowFileReader::Open(files_, "data", writer->Finish().value()).value();
  ASSERT_GT(reader->sections()[0].block_num, 3u);
  int seen = 0;
  EXPECT_EQ(reader->ReadSparse(reader->sections()[0], layout,
                               [&](const ValueBlock&) {
                                 return ++seen == 2 ? absl::AbortedError("enough")
                                                    : absl::OkStatus();
                               }),
            absl::AbortedError("enough"));
  EXPECT_EQ(seen, 2);
}

TEST_F(RowFiles, NamesCannotLeadOutOfTheFolder) {
  const v1::RowFile file = WriteSample(files_, "data", "delta-1").value();
  for (const char* name : {"../delta-1", "", "a/b", ".x"}) {
    EXPECT_EQ(WriteSample(files_, "data", name).status().code(),
              absl::StatusCode::kInvalidArgument);
    v1::RowFile other = file;
    other.set_name(name);
    EXPECT_EQ(RowFileReader::Open(files_, "data", other).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST_F(RowFiles, NeverReplacesAFile) {
  const v1::RowFile file = WriteSample(files_, "data", "delta-1").value();
  EXPECT_EQ(WriteSample(files_, "data", "delta-1").status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(ReadEverything(files_, "data", file).ok());
}

TEST_F(RowFiles, RefusesToWriteSectionsThatCannotBeReadBack) {
  const ValueLayout layout = SampleLayout(0);
  const std::vector<std::pair<ShardIndex, ShardIndex>> wrong = {{1, 1}, {1, 2}, {1, 5}};
  for (const auto& [first, second] : wrong) {  // twice; of the other server; nonexistent
    const auto writer = RowFileWriter::Create(files_, "data", "delta-1", SampleHeader()).value();
    for (const ShardIndex shard : {first, second}) {
      ASSERT_TRUE(WriteSparse(*writer, 0, shard, layout, SampleRows(layout, shard, 2), 2).ok());
    }
    EXPECT_EQ(writer->Finish().status().code(), absl::StatusCode::kInternal);
    ASSERT_TRUE(files_.Remove("data/delta-1").ok());
  }
}

TEST(RowBlockBuilder, KeysMustAscend) {
  const ValueLayout layout = SampleLayout(0);
  const std::vector<float> value(layout.full_floats());
  RowBlockBuilder builder(&layout);
  builder.Add(5, value.data(), true);
  EXPECT_DEATH(builder.Add(5, value.data(), true), "check failed");
}

// Every call of a write fails once, in every way: no file remains, and the next attempt succeeds.
TEST(RowFileFaults, LeaveNothingBehind) {
  for (const Fault fault :
       {Fault::kNoSpace, Fault::kInputOutput, Fault::kShortWrite, Fault::kLostReply}) {
    uint64_t n = 1;
    while (true) {
      MemoryFileSystem memory;
      ASSERT_TRUE(memory.MakeFolders("data").ok());
      FaultFileSystem files(&memory);
      files.FailCall(n, fault);
      const absl::StatusOr<v1::RowFile> file = WriteSample(files, "data", "delta-1");
      if (files.hits().empty()) break;
      ASSERT_FALSE(file.ok()) << files.hits()[0];
      EXPECT_THAT(std::string(file.status().message()), HasSubstr("data")) << file.status();
      // If the reply to a creation was lost, no process knows that the file is its own.
      if (n > 1 || fault != Fault::kLostReply) {
        EXPECT_TRUE(memory.List("data").value().empty()) << files.hits()[0];
        const absl::StatusOr<v1::RowFile> again = WriteSample(files, "data", "delta-1");
        ASSERT_TRUE(again.ok()) << again.status();
        EXPECT_TRUE(ReadEverything(files, "data", *again).ok());
      }
      ++n;
    }
    EXPECT_GT(n, 10u);
  }
}

// Every call of a read fails once: the error names the file, and the next attempt succeeds.
TEST(RowFileFaults, AreReportedByReads) {
  MemoryFileSystem memory;
  ASSERT_TRUE(memory.MakeFolders("data").ok());
  const v1::RowFile file = WriteSample(memory, "data", "delta-1").value();
  FaultFileSystem files(&memory);
  uint64_t n = 1;
  for (;; ++n) {
    files.FailCall(n, Fault::kInputOutput);
    const absl::Status status = ReadEverything(files, "data", file);
    if (files.hits().empty()) break;
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("data/delta-1"));
  }
  EXPECT_GT(n, 8u);
}

// Writes a file and cuts the power after every call in every way. Returns how many of the states
// after the last call do not hold the complete file.
int LostAfterFinish(MemoryFileSystem& files) {
  EXPECT_TRUE(files.MakeFolders("data").ok());
  const v1::RowFile file = WriteSample(files, "data", "delta-1").value();
  int lost = 0;
  for (const Loss loss : {Loss::kKill, Loss::kOrdered, Loss::kWeak}) {
    for (size_t prefix = 0; prefix <= files.operation_num(); ++prefix) {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        const auto disk = files.Crash(prefix, loss, seed);
        const absl::Status status = ReadEverything(*disk, "data", file);
        // An incomplete file is refused: it never reads as one with fewer rows.
        EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
        if (prefix == files.operation_num()) lost += !status.ok();
      }
    }
  }
  return lost;
}

TEST(RowFileCrash, AFinishedFileIsOnDisk) {
  MemoryFileSystem files;
  EXPECT_EQ(LostAfterFinish(files), 0);
}

TEST(RowFileCrash, AMissingSyncIsDetected) {
  MemoryFileSystem no_file_syncs, no_folder_syncs;
  no_file_syncs.IgnoreFileSyncs();
  EXPECT_GT(LostAfterFinish(no_file_syncs), 0);
  no_folder_syncs.IgnoreFolderSyncs();
  EXPECT_GT(LostAfterFinish(no_folder_syncs), 0);
}

}  // namespace
}  // namespace cistern::server
