// Conversions of several files, and of several columns to one slot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/data/prepare/convert_fixture.h"
#include "worker/data/prepare/convert.h"

namespace cistern::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ConvertTest, ColumnsOfSeveralFilesMayBeInAnyOrder) {
  ConvertOptions options;
  options.input = {scratch_.Write("1", "label,a,b\n1,x,y\n"),
                   scratch_.Write("2", "b,label,a\ny,0,x\n")};
  ASSERT_TRUE(Run(options).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0));
  EXPECT_EQ(Slot(0, 0), Slot(1, 0));
  EXPECT_EQ(Slot(0, 1), Slot(1, 1));
}

TEST_F(ConvertTest, ColumnsOfSeveralFilesWithARecipeMayBeInAnyOrder) {
  ConvertOptions options;
  options.input = {scratch_.Write("1", "label,a,day,b\n1,x,1,y\n0,x,2,y\n")};
  options.ignore = {"day"};
  ASSERT_TRUE(Run(options).ok());
  ConvertOptions later;
  later.recipe = scratch_.Path("out");
  later.out = scratch_.Path("later");
  later.input = {options.input[0], scratch_.Write("2", "b,day,label,more,a\ny,2,1,z,x\n"),
                 scratch_.Write("3", "b,label,a\ny,1,x\n")};
  // The third file lacks a column that the recipe does not read.
  later.select = [](uint64_t, const std::vector<absl::string_view>& fields) {
    return fields[2] != "1";
  };
  ASSERT_TRUE(Run(later).ok());
  EXPECT_THAT(block_.label, ElementsAre(0, 1, 1));
  EXPECT_EQ(Slot(0, 0), Slot(1, 0));
  EXPECT_EQ(Slot(0, 1), Slot(2, 1));
}

TEST_F(ConvertTest, AnAddedColumnIsEmptyWhereItIsAbsent) {
  ConvertOptions options;
  options.missing = StandIn::kKey;
  options.input = {scratch_.Write("1", "label,a\n1,x\n"),
                   scratch_.Write("2", "b,label,a\ny,0,x\n")};
  EXPECT_THAT(OptionsOf(Run(options)), ElementsAre("add_column=b"));
  options.add_columns = {"b"};
  ASSERT_TRUE(Run(options).ok());
  EXPECT_EQ(Slot(0, 0), Slot(1, 0));
  EXPECT_THAT(Slot(0, 1), ElementsAre(Hash64("b=")));
  EXPECT_THAT(Slot(1, 1), ElementsAre(Hash64("b=y")));
  // Likewise with a recipe; a column that has another case only is no absent one.
  ConvertOptions later;
  later.recipe = scratch_.Path("out");
  later.out = scratch_.Path("later");
  later.input = {scratch_.Write("3", "label,a\n1,x\n")};
  EXPECT_THAT(OptionsOf(Run(later)), ElementsAre("add_column=b"));
  later.add_columns = {"b"};
  ASSERT_TRUE(Run(later).ok());
  EXPECT_THAT(Slot(0, 1), ElementsAre(Hash64("b=")));
  later.add_columns.clear();
  later.input = {scratch_.Write("4", "label,a,B\n1,x,y\n")};
  EXPECT_THAT(OptionsOf(Run(later)), ElementsAre());
  later.input = {scratch_.Write("5", "a,b\nx,y\n")};  // nor is a label one that may be empty
  EXPECT_THAT(OptionsOf(Run(later)), ElementsAre());
}

TEST_F(ConvertTest, CrossesHaveCountsOfTheirOwn) {
  ConvertOptions options;
  options.sparse = {"a"};
  options.bucket = {"n"};
  options.cross = {"a,n"};
  options.min_count = 2;
  // 20 and 21 are of one bucket: ln(20)^2 = 8.97 and ln(21)^2 = 9.27 are not, 21 and 22 are.
  ASSERT_TRUE(Run("label,n,a\n1,21,x\n0,22,x\n1,20,x\n1,,x\n", options).ok());
  ASSERT_EQ(summary_.slots.size(), 2u);
  EXPECT_EQ(summary_.slots[1].column, "a_x_n");
  EXPECT_THAT(Slot(0, 1), ElementsAre(Hash64("a_x_n=1:x2:b9")));
  EXPECT_EQ(Slot(0, 1), Slot(1, 1));
  EXPECT_THAT(Slot(2, 1), ElementsAre(Hash64("a_x_n<rare>")));
  EXPECT_THAT(Slot(3, 1), ElementsAre());
  EXPECT_EQ(summary_.slots[1].rare, 1u);
  EXPECT_EQ(summary_.slots[1].missing, 1u);
}

TEST_F(ConvertTest, ACrossOfDenseColumnsIsTheOnlySlot) {
  ConvertOptions options;
  options.dense = {"n", "m"};
  options.bucket = {"n", "m"};
  options.cross = {"n,m"};
  ASSERT_TRUE(Run("label,n,m\n1,21,3\n0,22,4\n", options).ok());
  ASSERT_EQ(summary_.slots.size(), 1u);
  EXPECT_EQ(summary_.slots[0].column, "n_x_m");
  EXPECT_EQ(summary_.dense.size(), 2u);
}

TEST_F(ConvertTest, SeveralInputsAreReadInOrder) {
  ConvertOptions options = Raw();
  options.input = {scratch_.Write("1", "label,a\n0,1\n0,2\n0,3"),
                   scratch_.Write("2", "label,a\n0,4\n"),
                   scratch_.Write("3", "label,a\n0,5\n0,6\n")};
  options.samples_per_file = 2;
  ASSERT_TRUE(Run(options).ok());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(summary_.files, 3u);
  EXPECT_EQ(scratch_.Read("out/file_list.txt"),
            "3\npart-00000.norm\npart-00001.norm\npart-00002.norm\n");
  options.skip_rows = 2;
  options.max_rows = 3;
  ASSERT_TRUE(Run(options).ok());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(3, 4, 5));
  options.input.push_back(scratch_.Write("4", "label,b\n0,1\n"));
  options.max_rows = 0;
  EXPECT_THAT(std::string(Run(options).message()),
              HasSubstr("4: line 1: there is no column 'a', which "));
}

}  // namespace
}  // namespace cistern::data
