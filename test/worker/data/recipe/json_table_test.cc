// JSON Lines as a table.
#include "worker/data/recipe/json_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/worker/data/scratch.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class JsonTable : public testing::Test {
 protected:
  absl::Status Read(const std::string& text) {
    rows_.clear();
    CISTERN_ASSIGN_OR_RETURN(table_, OpenJsonLines(scratch_.Write("t.jsonl", text)));
    for (TextRow row;;) {
      CISTERN_ASSIGN_OR_RETURN(const bool found, table_->Next(&row));
      if (!found) return absl::OkStatus();
      rows_.emplace_back(row.fields.begin(), row.fields.end());
    }
  }

  Scratch scratch_;
  std::unique_ptr<TextTable> table_;
  std::vector<std::vector<std::string>> rows_;
};

TEST_F(JsonTable, MembersAreColumnsAndNumbersKeepTheirText) {
  ASSERT_TRUE(
      Read("{\"click\": 1, \"user\": {\"id\": 11898508762506083200593, \"vip\": true}, "
           "\"tags\": [\"a\", 2, null]}\n"
           "\n"
           "{\"price\": 3.50, \"click\": 0, \"user\": {\"id\": \"u\\u00e4\"}, \"tags\": []}\r\n"
           "{\"click\": null}")
          .ok());
  EXPECT_THAT(table_->columns(), ElementsAre("click", "user.id", "user.vip", "tags", "price"));
  EXPECT_THAT(table_->list_columns(), ElementsAre("tags"));
  ASSERT_EQ(rows_.size(), 3u);
  EXPECT_THAT(rows_[0], ElementsAre("1", "11898508762506083200593", "1", "a|2", ""));
  EXPECT_THAT(rows_[1], ElementsAre("0", "u\xc3\xa4", "", "", "3.50"));
  EXPECT_THAT(rows_[2], ElementsAre("", "", "", "", ""));
}

// Python's json writes them, though they are no JSON.
TEST_F(JsonTable, NumbersThatAreNoneAreMissing) {
  ASSERT_TRUE(
      Read("{\"a\": NaN, \"b\": [1.5, -Infinity], \"c\": \"NaN \\\" Infinity\", \"d\": Infinity}\n")
          .ok());
  EXPECT_THAT(rows_[0], ElementsAre("", "1.5", "NaN \" Infinity", ""));
}

TEST_F(JsonTable, MembersOfObjectsInAListAreLists) {
  ASSERT_TRUE(Read("{\"seen\": [{\"id\": 7, \"by\": {\"os\": \"a\"}}, {\"id\": 8}], \"n\": 4}\n"
                   "{\"n\": 5, \"seen\": []}\n"
                   "{\"seen\": [{\"by\": {\"os\": null}, \"id\": \"x\"}, null]}\n")
                  .ok());
  EXPECT_THAT(table_->columns(), ElementsAre("seen.id", "seen.by.os", "n", "seen"));
  EXPECT_THAT(table_->list_columns(), ElementsAre("seen", "seen.by.os", "seen.id"));
  ASSERT_EQ(rows_.size(), 3u);
  EXPECT_THAT(rows_[0], ElementsAre("7|8", "a", "4", ""));
  EXPECT_THAT(rows_[1], ElementsAre("", "", "5", ""));
  EXPECT_THAT(rows_[2], ElementsAre("x", "", "", ""));
}

TEST_F(JsonTable, ListsInListsCannotBeRead) {
  ASSERT_TRUE(
      Read("{\"click\": 1, \"seen\": [{\"id\": [1, {\"a\": 2}], \"at\": 5}, 3], \"n\": 4}\n").ok());
  EXPECT_THAT(table_->columns(), ElementsAre("click", "seen", "seen.id", "seen.at", "n"));
  EXPECT_NE(table_->WhyUnreadable("seen"), "");
  EXPECT_NE(table_->WhyUnreadable("seen.id"), "");
  EXPECT_EQ(table_->WhyUnreadable("n"), "");
  EXPECT_THAT(rows_[0], ElementsAre("1", "", "", "5", "4"));
}

TEST_F(JsonTable, MembersThatAppearLaterAreColumns) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "{\"a\": 1, \"tags\": null}\n";
  ASSERT_TRUE(Read(text + "{\"b\" : {\"c\": 7}, \"a\": \"\\\"b\\\":\", \"tags\": [\"x\"]}\n").ok());
  EXPECT_THAT(table_->columns(), ElementsAre("a", "tags", "b.c"));
  EXPECT_THAT(table_->list_columns(), ElementsAre("tags"));
  EXPECT_THAT(rows_.front(), ElementsAre("1", "", ""));
  EXPECT_THAT(rows_.back(), ElementsAre("\"b\":", "x", "7"));
}

TEST_F(JsonTable, ColumnsOfSeveralFilesAreThoseOfAll) {
  const std::vector<std::string> files = {scratch_.Write("1.jsonl", "{\"a\": 1}\n"),
                                          scratch_.Write("2.csv", "c\n3\n"),
                                          scratch_.Write("3.jsonl", "{\"b\": [2, 3]}\n")};
  const absl::StatusOr<JsonColumns> columns = FindJsonColumns(files);
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_THAT(columns->names, ElementsAre("a", "b"));
  const auto table = OpenJsonLines(files[0], {}, &*columns);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT((*table)->columns(), ElementsAre("a", "b"));
  EXPECT_THAT((*table)->list_columns(), ElementsAre("b"));
  TextRow row;
  EXPECT_TRUE(*(*table)->Next(&row));
  EXPECT_THAT(row.fields, ElementsAre("1", ""));
}

TEST_F(JsonTable, ObjectsOfVeryManyNamesAreNoColumns) {
  std::string text;
  for (size_t i = 0; i <= kMaxMembers; ++i) {
    text += absl::StrCat("{\"wide", i, "\": 1, \"map\": {\"k", i, "\": 2}}\n");
  }
  ASSERT_TRUE(Read(text).ok());
  EXPECT_EQ(table_->columns().size(), kMaxMembers + 2);
  EXPECT_EQ(table_->columns()[1], "map");
  EXPECT_THAT(table_->WhyUnreadable("map"), HasSubstr("an object of more than 1000 names"));
  EXPECT_EQ(table_->WhyUnreadable("wide1"), "");
  EXPECT_EQ(rows_[7][0], "");
  EXPECT_EQ(rows_[7][1], "");
}

TEST_F(JsonTable, IsNoArrayOfObjects) {
  for (const char* const array : {"[{\"a\": 1}]", "\xEF\xBB\xBF [\n {\"a\": 1}\n]"}) {
    EXPECT_THAT(std::string(CheckNoJsonArray(scratch_.Write("t.json", array)).message()),
                HasSubstr("jq -c '.[]' "))
        << array;
  }
  EXPECT_TRUE(CheckNoJsonArray(scratch_.Write("t.csv", "[a],b\n1,2\n")).ok());
  EXPECT_TRUE(CheckNoJsonArray(scratch_.Path("none")).ok());
}

TEST_F(JsonTable, RefusesOtherLinesWithTheirPlace) {
  for (const char* const line : {"[1]", "7", "{\"a\": 1", "{\"a\": 1} {\"a\": 2}", "{'a': 1}"}) {
    EXPECT_THAT(std::string(Read(std::string("{\"a\": 1}\n") + line + "\n").message()),
                HasSubstr("t.jsonl: line 2: "))
        << line;
  }
  EXPECT_THAT(std::string(Read("{\"a\": [\"x|y\"]}\n").message()), HasSubstr("separates values"));
  EXPECT_FALSE(Read("{\"a\": " + std::string(5000, '[') + std::string(5000, ']') + "}\n").ok());
}

TEST_F(JsonTable, IsToldFromModelFilesAndCsv) {
  EXPECT_TRUE(IsJsonLines(scratch_.Write("a", "\n{\"a\": 1}\n{\"a\": 2}\n")));
  EXPECT_TRUE(IsJsonLines(scratch_.Write("a.ndjson", "{\"a\": 1}")));
  EXPECT_FALSE(IsJsonLines(scratch_.Write("m", "{\"solver\": {\"seed\": 1}}\n")));
  EXPECT_FALSE(IsJsonLines(scratch_.Write("b", "{\n  \"solver\": {}\n}\n")));
  EXPECT_FALSE(IsJsonLines(scratch_.Write("c", "a,b\n{1},2\n")));
  EXPECT_FALSE(IsJsonLines(scratch_.Path("none")));
}

}  // namespace
}  // namespace cistern::data
