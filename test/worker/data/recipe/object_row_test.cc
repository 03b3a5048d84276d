#include "worker/data/recipe/object_row.h"

#include <gtest/gtest.h>

namespace cistern::data {
namespace {

Recipe CityRecipe() {
  Recipe recipe;
  recipe.layout.columns = {"click", "user", "city"};
  return recipe;
}

// The fields of "user" and "city"; null: the object lacks the column.
std::vector<std::string> Read(ObjectRow& row, absl::string_view object) {
  std::vector<absl::string_view> fields;
  const absl::Status status = row.Read(object, &fields);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::string> texts;
  for (const absl::string_view field : fields) {
    texts.push_back(field.data() == nullptr ? "(none)" : std::string(field));
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(ObjectRow, FindsColumnsByNameInAnyOrderAndCase) {
  ObjectRow row(CityRecipe(), {"user", "city"});
  EXPECT_EQ(Read(row, R"({"city": "rome", "age": 7, "USER": "u7"})"), (Texts{"u7", "rome"}));
  EXPECT_TRUE(row.found_any());
  EXPECT_EQ(Read(row, R"({"City": null})"), (Texts{"(none)", ""}));
  EXPECT_EQ(Read(row, R"({"age": 7})"), (Texts{"(none)", "(none)"}));
  EXPECT_FALSE(row.found_any());
}

TEST(ObjectRow, TheNameInItsOwnCaseComesBeforeOthers) {
  ObjectRow row(CityRecipe(), {"user", "city"});
  EXPECT_EQ(Read(row, R"({"CITY": "oslo", "user": "u7", "city": "rome"})"), (Texts{"u7", "rome"}));
  EXPECT_EQ(Read(row, R"({"CITY": "oslo", "City": "rome"})"), (Texts{"(none)", "oslo"}));
}

TEST(ObjectRow, RefusesWhatIsNoObject) {
  ObjectRow row(CityRecipe(), {"user", "city"});
  std::vector<absl::string_view> fields;
  for (const char* const text : {"", "[]", "7", R"({"city": )", R"({"city": [[1], [2]]})"}) {
    EXPECT_EQ(row.Read(text, &fields).code(), absl::StatusCode::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace cistern::data
