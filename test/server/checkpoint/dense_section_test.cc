#include "server/checkpoint/dense_section.h"

#include <gmock/gmock.h>

#include "test/server/checkpoint/row_file_sample.h"
#include "test/support/memory_file_system.h"

namespace cistern::server {
namespace {

v1::DenseTableSpec DenseSpec(int columns) {
  v1::DenseTableSpec spec;
  spec.set_name("dense");
  spec.set_rows(9);
  for (int i = 0; i < columns; ++i) spec.add_columns(absl::StrCat("c", i));
  return spec;
}

class DenseSectionTest : public testing::Test {
 protected:
  DenseSectionTest() {
    EXPECT_TRUE(files_.MakeFolders("/state").ok());
    const v1::RowFile file = WriteSample(files_, "/state", "sample").value();
    reader_ = RowFileReader::Open(files_, "/state", file).value();
  }
  MemoryFileSystem files_;
  std::unique_ptr<RowFileReader> reader_;
};

TEST_F(DenseSectionTest, FillsTheRowsThatItHolds) {
  DenseTable table(DenseSpec(2), 1, 2);
  ASSERT_TRUE(TakeDenseSections(*reader_, 0, table).ok());
  const DenseRange range = table.range();
  std::vector<float> cells((range.end - range.begin) * 2);
  ASSERT_TRUE(table.Read(range.begin, range.end - range.begin, cells.data()).ok());
  EXPECT_EQ(cells, SampleCells());
}

// The cells of a section with fewer columns end before the table's rows do.
TEST_F(DenseSectionTest, RefusesRowsOfAnotherWidth) {
  for (const int columns : {1, 3, 5}) {
    DenseTable table(DenseSpec(columns), 1, 2);
    EXPECT_EQ(TakeDenseSections(*reader_, 0, table).code(), absl::StatusCode::kDataLoss) << columns;
  }
}

}  // namespace
}  // namespace cistern::server
