#include "app/data/table_file.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::HasSubstr;

class TableFiles : public TextFixture {};

TEST_F(TableFiles, AreThoseOfTheirNames) {
  for (const char* name : {"a.csv", "A.TSV", "b.csv.gz", "c.jsonl.zst", "d.ndjson", "e.parquet"}) {
    EXPECT_TRUE(IsTable(name)) << name;
  }
  for (const char* name : {"model.json", "file_list.txt", "a.csv.old", "missing", ""}) {
    EXPECT_FALSE(IsTable(name)) << name;
  }
}

TEST_F(TableFiles, AreThoseOfTheirFirstLines) {
  EXPECT_TRUE(IsTable(WriteText("a.txt", "click,user\n1,a\n0,b\n")));
  EXPECT_TRUE(IsTable(WriteText("a.json", "{\"click\": 1}\n{\"click\": 0}\n")));
  EXPECT_FALSE(IsTable(WriteText("list.txt", "2\na.norm\nb.norm\n")));
  EXPECT_FALSE(IsTable(WriteText("model.json", "{\n \"layers\": []\n}\n")));
  EXPECT_TRUE(IsTable(std::filesystem::path(Write("part", 10)).parent_path() / "*.csv"));
}

TEST_F(TableFiles, AreJoinedByCommas) {
  EXPECT_EQ(*JoinTables("model.json", {}), "model.json");
  EXPECT_EQ(*JoinTables("a.csv", {"b.csv", "c.csv"}), "a.csv,b.csv,c.csv");
  const absl::Status model = JoinTables("a.csv", {"model.json"}).status();
  EXPECT_THAT(std::string(model.message()), HasSubstr("one model file is expected"));
  EXPECT_NE(FixOf(model), "");
  EXPECT_TRUE(absl::IsInvalidArgument(JoinTables("a.csv", {"b,c.csv"}).status()));
}

TEST_F(TableFiles, AreWhatOptionsForTablesNeed) {
  TableOptions options;
  const std::string model = WriteText("model.json", "{}");
  EXPECT_EQ(OptionWithoutTable(model, options), "");
  options.wishes.label_threshold = 3;
  options.wishes.dense = {"price"};
  EXPECT_EQ(OptionWithoutTable(model, options), "label_threshold");
  EXPECT_EQ(OptionWithoutTable(In("missing.json"), options), "");
  EXPECT_EQ(OptionWithoutTable(Write("a", 10), options), "");
  EXPECT_EQ(OptionWithoutTable(WriteText("any.name", "click,user\n1,a\n0,b\n"), options), "");
}

}  // namespace
}  // namespace cistern::app
