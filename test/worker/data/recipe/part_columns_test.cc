#include "worker/data/recipe/part_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> ColumnsOf(const std::vector<absl::string_view>& fields) {
  PartFinder finder(1);
  for (const absl::string_view field : fields) finder.Add({field});
  return finder.PartsOf(0, "v").columns;
}

TEST(PartFinder, EquallyLongListsHaveAColumnForEachPlace) {
  EXPECT_THAT(ColumnsOf({"[0.5, -1.25]", "1.5 2.5", ""}), ElementsAre("v.0", "v.1"));
  EXPECT_THAT(ColumnsOf({"0|1|1", "1|0|0"}), ElementsAre("v.0", "v.1", "v.2"));
}

TEST(PartFinder, ReadsWhatLibrariesOfPythonPrint) {
  EXPECT_THAT(ColumnsOf({"array([ 0.5, -1.25])", "array([1.5,\n       2.5], dtype=float32)",
                         "tensor([0.5, 1e-3], device='cuda:0')",
                         "[np.float64(0.5), np.float64(1.5)]", "[0.5 1.25]"}),
              ElementsAre("v.0", "v.1"));
}

TEST(PartFinder, PairsOfPlacesAndNumbersAreVectors) {
  EXPECT_THAT(ColumnsOf({"0:0.5 1:1.25", "0:-1.5 1:2.5", "0:7 1:3"}), ElementsAre("v.0", "v.1"));
  EXPECT_THAT(ColumnsOf({"17:0.5 23:1", "4:0.5 99:1", "5:1 8:1"}), IsEmpty());  // weights of ids
  EXPECT_THAT(ColumnsOf({"16:9", "4:3", "16:9"}), IsEmpty());
  EXPECT_THAT(ColumnsOf({"10:30:00", "11:05:59"}), IsEmpty());
  EXPECT_THAT(ColumnsOf({"0.5:1.5", "-0.5:2e-3"}), ElementsAre("v.0", "v.1"));
}

TEST(PartFinder, OthersHaveTheirMeanAndSize) {
  EXPECT_THAT(ColumnsOf({"[0.5]", "[0.5, 2.25]"}), ElementsAre("v.mean", "v.size"));
}

TEST(PartFinder, OneNumberInBracketsIsAPlace) {
  EXPECT_THAT(ColumnsOf({"[0.5]", "[1.5]", "tensor([2.5])"}), ElementsAre("v.0"));
  EXPECT_THAT(ColumnsOf({"[27]", "[9]"}), IsEmpty());   // ids
  EXPECT_THAT(ColumnsOf({"(0.5)", "1.5"}), IsEmpty());  // a negative number
  EXPECT_THAT(ColumnsOf({"[0.5]", "1.5", "2.5"}), IsEmpty());
  EXPECT_THAT(ColumnsOf({"POINT(40.5 2.25)", "POINT (41.5 3.5)"}), ElementsAre("v.0", "v.1"));
}

TEST(PartFinder, TruthsAndQuantizedVectorsHavePlaces) {
  EXPECT_THAT(ColumnsOf({"[True, False]", "[False, False]"}), ElementsAre("v.0", "v.1"));
  EXPECT_THAT(ColumnsOf({"[true,1,0]", "[0,false,1]"}), ElementsAre("v.0", "v.1", "v.2"));
  EXPECT_THAT(ColumnsOf({"[-128, 5]", "[17 -90]"}), ElementsAre("v.0", "v.1"));
  // Ids, and -1 for none.
  EXPECT_THAT(ColumnsOf({"[12, 7, -1]", "[9, -1, -1]"}), IsEmpty());
}

TEST(PartFinder, IdsWordsAndSingleNumbersAreNoVectors) {
  EXPECT_THAT(ColumnsOf({"17 23", "4 99"}), IsEmpty());
  EXPECT_THAT(ColumnsOf({"0.5 1.5", "0.5 blue"}), IsEmpty());
  EXPECT_THAT(ColumnsOf({"0.5", "1.5"}), IsEmpty());
}

std::vector<absl::string_view> Times(size_t times, absl::string_view field) {
  return std::vector<absl::string_view>(times, field);
}

PartFinder::Parts PartsOf(const std::vector<absl::string_view>& fields) {
  PartFinder finder(1);
  for (const absl::string_view field : fields) finder.Add({field});
  return finder.PartsOf(0, "v");
}

TEST(PartFinder, AFewListsOfAnotherLengthAreCounted) {
  std::vector<absl::string_view> fields = Times(1990, "[0.5, nan]");
  for (const absl::string_view field : {"", "[]", "[0.5]", "0.5 1.5 2.5"}) fields.push_back(field);
  const PartFinder::Parts parts = PartsOf(fields);
  EXPECT_THAT(parts.columns, ElementsAre("v.0", "v.1"));
  EXPECT_EQ(parts.odd, 2u);
  EXPECT_EQ(parts.first_odd, 1993u);
  // The first 1,000 rows decide nothing.
  fields = Times(1200, "0.5");
  for (const absl::string_view field : Times(1200, "0.5;1.5;2.5")) fields.push_back(field);
  EXPECT_THAT(PartsOf(fields).columns, ElementsAre("v.mean", "v.size"));
}

TEST(PartFinder, PlacesOfRecordsAreColumns) {
  EXPECT_THAT(ColumnsOf({R"(["u3", 10.48])", R"(["u4, x", 7.5])", ""}), ElementsAre("v.0", "v.1"));
  EXPECT_THAT(ColumnsOf({"u3|10.48|rome", "u4|7.5|oslo", "u4||oslo"}),
              ElementsAre("v.0", "v.1", "v.2"));
  EXPECT_THAT(ColumnsOf({"('u3', 10.48)", "('u4', 7)", "('u4', 8.25)"}), ElementsAre("v.0", "v.1"));
  EXPECT_THAT(ColumnsOf({"New York;10.48", "Oslo;7.5"}), ElementsAre("v.0", "v.1"));
}

TEST(PartFinder, ListsOfAnyLengthDatesAndWeightsAreNoRecords) {
  for (const std::vector<absl::string_view>& fields :
       {std::vector<absl::string_view>{"t1|t7", "t2|t3"},
        {"u3|10", "u4|7"},                  // both can be values
        {"u3|1.5", "u4|1.5|u5|2.5", "u6"},  // of any length
        {"u3|1.5", "0.25|u4"},              // places mean nothing
        {"$1,299.99", "$2,345.50"},         // a comma outside of brackets
        {"May 31, 2024", "June 1, 2024"},
        {"red", "blue"}}) {
    EXPECT_THAT(ColumnsOf(fields), IsEmpty()) << fields.front();
  }
}

TEST(PartFinder, MembersOfObjectsAreColumns) {
  PartFinder::Parts parts =
      PartsOf({R"({"d": "a", "p": 1})", R"({"p": 2, "u": {"x": "b"}})", "", R"({"d": "c"})"});
  EXPECT_THAT(parts.columns, ElementsAre("v.d", "v.p", "v.u.x"));
  EXPECT_TRUE(parts.are_members);
  EXPECT_THAT(ColumnsOf({"d=a&p=1", "p=2&d=b"}), ElementsAre("v.d", "v.p"));
  // One field in a hundred may be none.
  std::vector<absl::string_view> fields = Times(300, "{'p': 1}");
  for (const absl::string_view field : {"x", "{}", "y"}) fields.push_back(field);
  parts = PartsOf(fields);
  EXPECT_THAT(parts.columns, ElementsAre("v.p"));
  EXPECT_EQ(parts.odd, 2u);
  EXPECT_EQ(parts.first_odd, 301u);
}

TEST(PartFinder, WeightsOfValuesAreNoMembers) {
  EXPECT_THAT(ColumnsOf({R"({"a": 0.5, "b": 1})", R"({"c": 0.5, "d": 1})", R"({"e": true})"}),
              IsEmpty());
  EXPECT_THAT(ColumnsOf({"a=0.5|b=0.7", "c=1.5", "d=0.2|e=0.5"}), IsEmpty());
  EXPECT_THAT(ColumnsOf({"page=home", "page=cart"}), IsEmpty());
  EXPECT_THAT(ColumnsOf({"red", "{\"a\": 1}", "blue", "green"}), IsEmpty());
}

// Rows of the columns "id" and "v".
class Rows : public TextTable {
 public:
  explicit Rows(std::vector<absl::string_view> fields) : fields_(std::move(fields)) {}
  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override {
    if (read_ == fields_.size()) return false;
    row->fields = {"a", fields_[read_++]};
    row->line = read_ + 1;
    return true;
  }
  bool has_objects() const override { return true; }
  uint64_t bytes_read() const override { return 7; }

 private:
  const std::vector<std::string> columns_ = {"id", "v"};
  const std::vector<absl::string_view> fields_;
  size_t read_ = 0;
};

TEST(Wholes, AreTheLongestNamesBeforeAPoint) {
  const std::vector<std::string> columns = {"a", "a.b", "v.", "", "b.c", "a.b"};
  const Wholes wholes(columns);
  EXPECT_EQ(wholes.Of("a.x"), 0u);
  EXPECT_EQ(wholes.Of("a.b.x"), 1u);
  EXPECT_EQ(wholes.Of("a.c.x.y"), 0u);
  EXPECT_EQ(wholes.Of("a.b"), 0u);
  EXPECT_EQ(wholes.Of("v..x"), 2u);
  EXPECT_EQ(wholes.Of(".x"), 3u);
  for (const char* name : {"a", "a.", "ab.x", "v.x", "b", "c.a", ""}) {
    EXPECT_EQ(wholes.Of(name), columns.size()) << name;
  }
}

TEST(WithParts, AddsThePartsOfLists) {
  const auto table =
      WithParts(std::make_unique<Rows>(std::vector<absl::string_view>{"[0.5, 2.5]", ""}), "in.csv",
                {"v.1", "v.mean", "v.size", "id"});
  EXPECT_THAT(table->columns(), ElementsAre("id", "v", "v.1", "v.mean", "v.size"));
  EXPECT_TRUE(table->has_objects());
  EXPECT_EQ(table->bytes_read(), 7u);
  TextRow row;
  ASSERT_TRUE(*table->Next(&row));
  EXPECT_THAT(row.fields, ElementsAre("a", "[0.5, 2.5]", "2.5", "1.5", "2"));
  ASSERT_TRUE(*table->Next(&row));
  EXPECT_THAT(row.fields, ElementsAre("a", "", "", "", "0"));
  EXPECT_FALSE(*table->Next(&row));
  EXPECT_THAT(table->odd_fields(), IsEmpty());
}

// Reads all rows: the status, and what was odd.
std::pair<absl::Status, std::vector<std::string>> ReadAll(
    const std::vector<absl::string_view>& fields, const std::vector<std::string>& parts) {
  const auto table = WithParts(std::make_unique<Rows>(fields), "in.csv", parts, parts);
  TextRow row;
  while (true) {
    const absl::StatusOr<bool> found = table->Next(&row);
    if (!found.ok() || !*found) return {found.status(), table->odd_fields()};
  }
}

TEST(WithParts, AddsThePlacesOfRecords) {
  PartReader reader;
  bool is_odd = true;
  for (const char* const field : {R"(["New York", 1.5])", "New York|1.5", "('New York', 1.5)"}) {
    EXPECT_THAT(reader.Read(field, {"0", "1"}, 2, &is_odd), ElementsAre("New York", "1.5"))
        << field;
    EXPECT_FALSE(is_odd) << field;
  }
  EXPECT_THAT(reader.Read("a|b|1.5", {"0", "1"}, 2, &is_odd), ElementsAre("a", "b"));
  EXPECT_TRUE(is_odd);
}

TEST(WithParts, ReportsFieldsThatAreUnlikeTheTrainingData) {
  std::vector<absl::string_view> fields = Times(30, "[0.5, 2.5]");
  fields[3] = "[0.5]";
  fields[9] = "[1, 2, 3]";
  auto [status, odd] = ReadAll(fields, {"v.0", "v.1"});
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_THAT(odd, ElementsAre("in.csv: column 'v': 2 of 30 fields, the first in line 5, do not "
                               "hold 2 values, as in the training data: what they lack counts as "
                               "missing"));
  // All of them.
  std::tie(status, odd) = ReadAll(Times(30, "[0.5, 2.5]"), {"v.0", "v.1", "v.2"});
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("in.csv: column 'v': all 30 fields, the first in line 2, do not hold 3"));
  std::tie(status, odd) = ReadAll({"u7", ""}, {"v.device"});
  EXPECT_THAT(std::string(status.message()), HasSubstr("hold no object with members such as"));
  EXPECT_THAT(ReadAll(Times(30, "0:0.5 1:7"), {"v.0", "v.1"}).second, IsEmpty());
  EXPECT_FALSE(ReadAll(Times(30, "{'x': 7}"), {"v.0", "v.1"}).first.ok());
  // A few rows may be so by chance.
  std::tie(status, odd) = ReadAll(Times(3, "[0.5, 2.5]"), {"v.0", "v.1", "v.2"});
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(odd.size(), 1u);
  EXPECT_THAT(ReadAll(Times(30, "{'device': 'x'}"), {"v.device", "v.os"}).second, IsEmpty());
}

}  // namespace
}  // namespace cistern::data
