// Row files: there and back.
#include "server/checkpoint/row_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/checkpoint/row_file_sample.h"
#include "test/common/temp_folder.h"

namespace cistern {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class RowFiles : public testing::Test {
 protected:
  TempFolder folder_;
  LocalFileSystem files_;
};

TEST_F(RowFiles, ReadsBackWhatWasWritten) {
  const v1::RowFile file = WriteSample(files_, folder_.path(), "delta-1").value();
  EXPECT_EQ(file.name(), "delta-1");
  EXPECT_FALSE(file.base());
  EXPECT_EQ(file.server(), 1u);
  EXPECT_EQ(file.server_num(), 2u);
  EXPECT_EQ(file.commit(), 7u);
  EXPECT_EQ(file.epoch(), 3u);
  EXPECT_EQ(file.rows(), 5u + 6 + 6 + 4);
  EXPECT_EQ(file.bytes(), fs::file_size(folder_ / "delta-1"));

  const auto reader = RowFileReader::Open(files_, folder_.path(), file).value();
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
  const auto writer =
      RowFileWriter::Create(files_, folder_.path(), "base-1", SampleHeader()).value();
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

  const auto reader = RowFileReader::Open(files_, folder_.path(), file).value();
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

TEST_F(RowFiles, RowLargerThanABlockHasItsOwn) {
  constexpr uint32_t kColumns = 40000;  // 160 KB a row
  const auto writer =
      RowFileWriter::Create(files_, folder_.path(), "base-1", SampleHeader()).value();
  std::vector<float> cells(3 * kColumns);
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<float>(i);
  ASSERT_TRUE(WriteDense(*writer, 0, 0, kColumns, cells, 3).ok());
  const v1::RowFile file = writer->Finish().value();
  const auto reader = RowFileReader::Open(files_, folder_.path(), file).value();
  EXPECT_EQ(reader->sections()[0].block_num, 3u);
  std::vector<float> read;
  ASSERT_TRUE(reader->ReadDense(reader->sections()[0], &read).ok());
  EXPECT_EQ(read, cells);
}

}  // namespace
}  // namespace cistern
