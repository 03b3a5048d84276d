#include "app/data/table_head.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TableHeads : public TextFixture {};

TEST_F(TableHeads, HasTheFirstRowsOfAllFiles) {
  std::filesystem::create_directories(In("days/dt=1"));
  std::filesystem::create_directories(In("days/dt=2"));
  WriteText("days/dt=1/a.csv", "click,user\n1,u1\n0,u2\n");
  WriteText("days/dt=2/b.csv", "user,click\nu3,1\nu4,0\n");  // in another order
  TableHeadOptions options;
  options.table = In("days");
  options.rows = 3;
  const absl::StatusOr<TableHead> head = ReadTableHead(options);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_THAT(head->layout.columns, ElementsAre("click", "user", "dt"));
  EXPECT_THAT(head->rows, ElementsAre(ElementsAre("1", "u1", "1"), ElementsAre("0", "u2", "1"),
                                      ElementsAre("1", "u3", "2")));
  options.rows = 100;
  EXPECT_EQ(ReadTableHead(options)->rows.size(), 4u);
  options.rows = 0;
  EXPECT_EQ(ReadTableHead(options)->rows.size(), 0u);
}

TEST_F(TableHeads, HasPartsOfColumns) {
  TableHeadOptions options;
  options.table = WriteText("a.jsonl",
                            "{\"click\": 1, \"user\": {\"id\": 7}}\n"
                            "{\"click\": 0, \"user\": {\"id\": 8, \"tier\": \"gold\"}}\n");
  const absl::StatusOr<TableHead> head = ReadTableHead(options);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_THAT(head->layout.columns, ElementsAre("click", "user.id", "user.tier"));
  EXPECT_THAT(head->rows[1], ElementsAre("0", "8", "gold"));
}

TEST_F(TableHeads, TakesWhatPeopleDecided) {
  TableHeadOptions options;
  options.table = WriteText("a.txt", "1#\xff\n0#v\n");
  options.delimiter = '#';
  options.columns = {"y", "c1..c1"};
  const absl::StatusOr<TableHead> head = ReadTableHead(options);
  ASSERT_TRUE(head.ok()) << head.status();
  const nlohmann::ordered_json json = JsonOf(*head);
  EXPECT_EQ(json["columns"].dump(), R"(["y","c1"])");
  EXPECT_EQ(json["rows"].dump(), R"([["1","\\xff"],["0","v"]])");
  options.columns = {"y", "c2..c1"};
  EXPECT_THAT(OptionsOf(ReadTableHead(options).status()), ElementsAre("columns"));
}

TEST_F(TableHeads, AColumnThatAFileLacksIsEmptyThere) {
  TableHeadOptions options;
  options.table =
      absl::StrCat(WriteText("a.csv", "y,a\n1,u\n"), ",", WriteText("b.csv", "y,a,new\n0,v,w\n"));
  options.add_columns = {"new"};
  const absl::StatusOr<TableHead> head = ReadTableHead(options);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_THAT(head->rows, ElementsAre(ElementsAre("1", "u", ""), ElementsAre("0", "v", "w")));
}

TEST_F(TableHeads, NamesWhatItCannotRead) {
  TableHeadOptions options;
  options.table = In("none.csv");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadTableHead(options).status()));
  options.table = WriteText("bad.csv", "click,user\n1,u\n0\n");
  const absl::Status bad = ReadTableHead(options).status();
  EXPECT_THAT(std::string(bad.message()), HasSubstr("line 3"));
}

}  // namespace
}  // namespace cistern::app
