#include "common/value/table_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern {
namespace {

using ::testing::HasSubstr;

v1::Schema SchemaOf(uint32_t dim, uint64_t dense_rows) {
  v1::Schema schema;
  for (const char* name : {"deep", "wide"}) {
    v1::TableSpec& table = *schema.add_tables();
    table.set_name(name);
    table.set_dim(name[0] == 'd' ? dim : 1);
  }
  for (const char* name : {"dense", "dense_state"}) {
    v1::DenseTableSpec& table = *schema.add_dense_tables();
    table.set_name(name);
    table.set_rows(name == std::string("dense") ? dense_rows : 6);
    table.add_columns(std::string("w"));  // gcc 12 warns about a bare literal
  }
  return schema;
}

std::vector<std::string> LeftOut(const TableChoice& choice) {
  std::vector<std::string> names;
  for (const v1::TableLeftOut& table : choice.left_out) names.push_back(table.name());
  return names;
}

TEST(TableChoice, AllEqualTablesAreRead) {
  const TableChoice choice = ChooseTables(SchemaOf(4, 9), SchemaOf(4, 9), {}, false);
  EXPECT_EQ(choice.difference, "");
  EXPECT_TRUE(choice.left_out.empty());
  EXPECT_TRUE(choice.Reads("deep") && choice.Reads("dense_state"));
}

TEST(TableChoice, UpgradeConvertsAnotherDimAndLeavesTheDenseTableOut) {
  const TableChoice strict = ChooseTables(SchemaOf(8, 17), SchemaOf(4, 9), {}, false);
  EXPECT_THAT(strict.difference, HasSubstr("dim is 8 here and 4 there"));
  EXPECT_TRUE(strict.upgrade_cures);
  const TableChoice choice = ChooseTables(SchemaOf(8, 17), SchemaOf(4, 9), {}, true);
  EXPECT_EQ(choice.difference, "");
  EXPECT_EQ(LeftOut(choice), std::vector<std::string>{"dense"});
  EXPECT_EQ(choice.left_out[0].reason(), "17 rows here, 9 in the files");
  EXPECT_FALSE(choice.Reads("dense"));
  EXPECT_TRUE(choice.Reads("dense_state"));
}

TEST(TableChoice, OnlyTheNamedTablesCount) {
  v1::Schema there = SchemaOf(4, 9);
  there.mutable_tables(1)->set_name("older");
  const TableChoice all = ChooseTables(SchemaOf(4, 17), there, {}, true);
  EXPECT_THAT(all.difference, HasSubstr("table 'wide' exists here but not there"));
  const TableChoice choice =
      ChooseTables(SchemaOf(4, 17), there, {"dense_state", "deep", "deep"}, false);
  EXPECT_EQ(choice.difference, "");
  EXPECT_EQ(LeftOut(choice), (std::vector<std::string>{"wide", "dense"}));
}

TEST(TableChoice, UnknownNameIsRefusedWithTheKnownOnes) {
  EXPECT_THAT(ChooseTables(SchemaOf(4, 9), SchemaOf(4, 9), {"deeep"}, true).difference,
              HasSubstr("no table 'deeep' here, only deep, wide, dense, dense_state"));
  v1::Schema there = SchemaOf(4, 9);
  there.mutable_tables()->RemoveLast();
  EXPECT_THAT(ChooseTables(SchemaOf(4, 9), there, {"wide"}, true).difference,
              HasSubstr("no table 'wide' there, only deep, dense"));
}

TEST(TableChoice, RequestedDenseTableMustFit) {
  const TableChoice choice = ChooseTables(SchemaOf(4, 17), SchemaOf(4, 9), {"dense"}, true);
  EXPECT_THAT(choice.difference, HasSubstr("17 rows here and 9 there"));
  EXPECT_FALSE(ChooseTables(SchemaOf(4, 17), SchemaOf(4, 9), {"dense"}, false).upgrade_cures);
}

TEST(TableChoice, UpgradeDoesNotConvertTheAccessor) {
  v1::Schema here = SchemaOf(4, 9);
  here.mutable_tables(1)->set_accessor(v1::TableSpec::CTR);
  const TableChoice choice = ChooseTables(here, SchemaOf(4, 9), {}, false);
  EXPECT_FALSE(choice.upgrade_cures);
  EXPECT_THAT(ChooseTables(here, SchemaOf(4, 9), {}, true).difference,
              HasSubstr("table 'wide' has a different accessor"));
}

}  // namespace
}  // namespace cistern
