#include "worker/data/recipe/vector_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cistern {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> ColumnsOf(const std::vector<absl::string_view>& fields) {
  VectorFinder finder(1);
  for (const absl::string_view field : fields) finder.Add({field});
  return finder.ColumnsOf(0, "v");
}

TEST(VectorFinder, EquallyLongListsHaveAColumnForEachPlace) {
  EXPECT_THAT(ColumnsOf({"[0.5, -1.25]", "1.5 2.5", ""}), ElementsAre("v.0", "v.1"));
  EXPECT_THAT(ColumnsOf({"0|1|1", "1|0|0"}), ElementsAre("v.0", "v.1", "v.2"));
}

TEST(VectorFinder, OthersHaveTheirMeanAndSize) {
  EXPECT_THAT(ColumnsOf({"[0.5]", "[0.5, 2.25]"}), ElementsAre("v.mean", "v.size"));
}

TEST(VectorFinder, IdsWordsAndSingleNumbersAreNoVectors) {
  EXPECT_THAT(ColumnsOf({"17 23", "4 99"}), IsEmpty());
  EXPECT_THAT(ColumnsOf({"0.5 1.5", "0.5 blue"}), IsEmpty());
  EXPECT_THAT(ColumnsOf({"0.5", "1.5"}), IsEmpty());
}

// Two rows of the columns "id" and "v".
class TwoRows : public TextTable {
 public:
  const std::vector<std::string>& columns() const override { return columns_; }
  absl::StatusOr<bool> Next(TextRow* row) override {
    if (read_ == 2) return false;
    row->fields = read_++ == 0 ? std::vector<absl::string_view>{"a", "[0.5, 2.5]"}
                               : std::vector<absl::string_view>{"b", ""};
    return true;
  }
  bool has_objects() const override { return true; }
  uint64_t bytes_read() const override { return 7; }

 private:
  const std::vector<std::string> columns_ = {"id", "v"};
  int read_ = 0;
};

TEST(WithVectors, AddsThePartsOfLists) {
  const auto table = WithVectors(std::make_unique<TwoRows>(), {"v.1", "v.mean", "v.size", "id"});
  EXPECT_THAT(table->columns(), ElementsAre("id", "v", "v.1", "v.mean", "v.size"));
  EXPECT_TRUE(table->has_objects());
  EXPECT_EQ(table->bytes_read(), 7u);
  TextRow row;
  ASSERT_TRUE(*table->Next(&row));
  EXPECT_THAT(row.fields, ElementsAre("a", "[0.5, 2.5]", "2.5", "1.5", "2"));
  ASSERT_TRUE(*table->Next(&row));
  EXPECT_THAT(row.fields, ElementsAre("b", "", "", "", "0"));
  EXPECT_FALSE(*table->Next(&row));
}

}  // namespace
}  // namespace cistern
