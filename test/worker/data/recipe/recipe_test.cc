#include "worker/data/recipe/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// One value of everything that a recipe can say.
Recipe Example() {
  Recipe recipe;
  recipe.layout.columns = {"id", "click", "age", "pay", "city", "tags"};
  recipe.labels = {{"click", 3.5, {}}};
  recipe.dense = {{"age", DenseTransform::kLog1p, 0, 1, -1},
                  {"pay", DenseTransform::kStandardize, 0.1, 2.5, 0}};
  recipe.slots = {{"city", false, {}}, {"age", true, {}}, {"tags", false, '|'}};
  recipe.missing_values = {"NA", "?"};
  recipe.missing = StandIn::kKey;
  recipe.vocabulary_xxh3 = 0x0123456789abcdef;
  return recipe;
}

TEST(Recipe, ReadsWhatItWrites) {
  const std::string text = FormatRecipe(Example());
  const absl::StatusOr<Recipe> read = ParseRecipe(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatRecipe(*read), text);
  EXPECT_EQ(RecipeDifference(*read, Example()), "");
  EXPECT_THAT(read->layout.columns, ElementsAre("id", "click", "age", "pay", "city", "tags"));
  EXPECT_EQ(read->dense[1].deviation, 2.5);
}

TEST(Recipe, HashStaysTheSameBetweenVersions) {
  // A recipe that was written once must be accepted forever. Computed with Python: xxh3_64 of
  // json.dumps(meaning, separators=(",", ":")).
  EXPECT_EQ(HashTextOf(Recipe()), "456ec480212f0476");
  EXPECT_EQ(HashTextOf(Example()), "53378c2d3e891f4f");
}

TEST(Recipe, LayoutIsNotPartOfTheMeaning) {
  Recipe other = Example();
  other.layout.delimiter = ';';
  other.layout.header = false;
  other.layout.columns = {"city", "tags", "age", "pay", "click"};
  other.missing_values = {"?", "NA"};
  EXPECT_EQ(HashOf(other), HashOf(Example()));
  EXPECT_EQ(RecipeDifference(other, Example()), "");
}

TEST(Recipe, NamesTheFirstDifference) {
  const struct {
    std::function<void(Recipe&)> change;
    const char* difference;
  } cases[] = {
      {[](Recipe& r) { r.labels[0].threshold = 4; }, "labels[0] (click).threshold is 4.0, not 3.5"},
      {[](Recipe& r) { r.dense[0].transform = DenseTransform::kNone; },
       "dense[0] (age).transform is none, not log1p"},
      {[](Recipe& r) { std::swap(r.dense[0], r.dense[1]); }, "dense[0].column is pay, not age"},
      {[](Recipe& r) { r.dense[1].mean = 0.2; }, "dense[1] (pay).mean is 0.2, not 0.1"},
      {[](Recipe& r) { r.slots.pop_back(); }, "slots has 2 elements, not 3"},
      {[](Recipe& r) { r.slots[1].bucket = false; }, "slots[1] (age).bucket is not set, not true"},
      {[](Recipe& r) { r.slots[2].separator = ' '; }, "slots[2] (tags).separator is  , not |"},
      {[](Recipe& r) { r.missing_values = {"NA"}; }, "missing_values[0] is NA, not ?"},
      {[](Recipe& r) { r.keys = KeyMode::kRaw; }, "keys is raw, not hash"},
      {[](Recipe& r) { r.key_bits = 32; }, "key_bits is 32, not 64"},
      {[](Recipe& r) { r.vocabulary_xxh3 = 1; },
       "vocabulary.xxh3 is 0000000000000001, not 0123456789abcdef"},
      {[](Recipe& r) { r.trim = true; }, "trim is true, not false"},
  };
  for (const auto& one : cases) {
    Recipe changed = Example();
    one.change(changed);
    EXPECT_EQ(RecipeDifference(changed, Example()), one.difference);
    EXPECT_NE(HashOf(changed), HashOf(Example())) << one.difference;
  }
}

Recipe WithCross() {
  Recipe recipe = Example();
  const std::vector<Recipe::Source> sources = {{"city"}, {"age", true}, {"tags", false, '|'}};
  recipe.slots.push_back({CrossName(sources), false, {}, sources});
  return recipe;
}

TEST(Recipe, CrossesAreOfTheSecondFormat) {
  const std::string text = FormatRecipe(WithCross());
  EXPECT_THAT(text, HasSubstr("\"format\": 2"));
  EXPECT_THAT(FormatRecipe(Example()), HasSubstr("\"format\": 1"));  // older programs read it
  const absl::StatusOr<Recipe> read = ParseRecipe(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatRecipe(*read), text);
  EXPECT_EQ(read->slots[3].column, "city_x_age_x_tags");
  Recipe changed = WithCross();
  changed.slots[3].cross[1].bucket = false;
  EXPECT_EQ(RecipeDifference(changed, WithCross()),
            "slots[3] (city_x_age_x_tags).cross[1] (age).bucket is not set, not true");
}

TEST(Recipe, LaterMembersAreOfTheThirdFormat) {
  const std::function<void(Recipe&)> changes[] = {
      [](Recipe& r) {
        r.labels = {{"click", {}, {"yes"}, {"no"}}};
      },
      [](Recipe& r) { r.dense[0].low = -1, r.dense[0].high = 2; },
      [](Recipe& r) { r.slots[0].integer = true; },
      [](Recipe& r) { r.slots[2].list = r.slots[2].weights = true; },
      [](Recipe& r) {
        r.history = {2, {1, 0x0123456789abcdef}};
      }};
  for (const auto& change : changes) {
    Recipe recipe = Example();
    change(recipe);
    const std::string text = FormatRecipe(recipe);
    EXPECT_THAT(text, HasSubstr("\"format\": 3"));
    const absl::StatusOr<Recipe> read = ParseRecipe(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(FormatRecipe(*read), text);
  }
}

TEST(Recipe, HistoryIsNoPartOfTheMeaning) {
  Recipe later = Example();
  later.history = {5, {HashOf(Example())}};
  EXPECT_EQ(HashOf(later), HashOf(Example()));
  later.vocabulary_xxh3 = 7;
  EXPECT_TRUE(Extends(later, Example()));
  EXPECT_FALSE(Extends(Example(), later));
  later.history.extends.clear();
  EXPECT_FALSE(Extends(later, Example()));
  EXPECT_TRUE(Extends(later, later));
}

TEST(Recipe, ARowNeedsTheColumnsOfCrosses) {
  Recipe recipe = WithCross();
  recipe.slots.erase(recipe.slots.begin(), recipe.slots.begin() + 3);
  EXPECT_THAT(FeatureColumns(recipe), ElementsAre("age", "pay", "city", "tags"));
}

TEST(Recipe, TextsOfCrossesAreDistinct) {
  EXPECT_EQ(CrossText({"7", "33"}), "1:72:33");
  EXPECT_NE(CrossText({"a", "1:b"}), CrossText({"a1:", "b"}));
  EXPECT_NE(CrossText({"", "ab"}), CrossText({"ab", ""}));
}

TEST(Recipe, RefusesCrossesOfOneColumnOrAnotherName) {
  const auto error = [](const std::function<void(Recipe&)>& change) {
    Recipe recipe = WithCross();
    change(recipe);
    return std::string(ParseRecipe(FormatRecipe(recipe)).status().message());
  };
  EXPECT_THAT(error([](Recipe& r) { r.slots[3].cross.resize(1); }),
              HasSubstr("cross\" is missing"));
  EXPECT_THAT(error([](Recipe& r) { r.slots[3].column = "city"; }), HasSubstr("joined by _x_"));
  EXPECT_THAT(error([](Recipe& r) { r.keys = KeyMode::kRaw; }),
              HasSubstr("because a slot is a cross"));
}

TEST(Recipe, KeepsNamesThatAreNotUtf8) {
  Recipe recipe = Example();
  recipe.slots[0].column = recipe.layout.columns[4] =
      "stra\xdf"
      "e";
  const absl::StatusOr<Recipe> read = ParseRecipe(FormatRecipe(recipe));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->slots[0].column,
            "stra\xdf"
            "e");
}

TEST(Recipe, RefusesWhatIsNoRecipe) {
  const std::string good = FormatRecipe(Example());
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const absl::Status status = ParseRecipe(text).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error("\"log1p\"", "\"none\""), HasSubstr("changed after it was written"));
  EXPECT_THAT(error("\"log1p\"", "\"log2\""), HasSubstr("meaning.dense[0].transform"));
  EXPECT_THAT(error("\"format\": 1", "\"format\": 7"), HasSubstr("newer than this program"));
  EXPECT_THAT(error("\"trim\"", "\"trimm\""), HasSubstr("\"meaning.trim\" is missing"));
  EXPECT_THAT(error("\"key_bits\": 64", "\"key_bits\": 63"), HasSubstr("32 or 64"));
  EXPECT_THAT(error("\"deviation\": 2.5", "\"deviation\": 0.0"), HasSubstr("above 0"));
  EXPECT_THAT(error("{", "["), HasSubstr("not a recipe"));
  for (size_t size = 0; size + 2 < good.size(); size += 7) {
    EXPECT_TRUE(absl::IsDataLoss(ParseRecipe(good.substr(0, size)).status())) << size;
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseRecipe(std::string(200000, '[')).status()));
}

TEST(Recipe, RowsOfTextDependOnTheOrderOfColumns) {
  Recipe other = Example();
  other.layout.columns = {"age", "id", "pay", "city", "tags", "click"};  // of those that are read
  EXPECT_TRUE(ReadSameRows(other, Example()));
  std::swap(other.layout.columns[0], other.layout.columns[2]);
  EXPECT_EQ(HashOf(other), HashOf(Example()));
  EXPECT_FALSE(ReadSameRows(other, Example()));
  other = Example();
  other.layout.delimiter = ';';
  EXPECT_FALSE(ReadSameRows(other, Example()));
  other = Example();
  other.missing = StandIn::kNone;
  EXPECT_FALSE(ReadSameRows(other, Example()));
}

TEST(Recipe, FeatureColumnsAreInTheOrderOfTheText) {
  EXPECT_THAT(FeatureColumns(Example()), ElementsAre("age", "pay", "city", "tags"));
}

TEST(Recipe, AWeightIsOfTheFourthFormat) {
  Recipe recipe = Example();
  recipe.weight = "pay";
  const std::string text = FormatRecipe(recipe);
  EXPECT_THAT(text, HasSubstr("\"format\": 4"));
  const absl::StatusOr<Recipe> read = ParseRecipe(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->weight, "pay");
  EXPECT_EQ(FormatRecipe(*read), text);
  EXPECT_EQ(RecipeDifference(recipe, Example()), "weight is pay, not set");
  EXPECT_EQ(FeatureColumns(recipe), FeatureColumns(Example()));
  EXPECT_EQ(ReadColumns(recipe).back(), "pay");
}

TEST(Recipe, LogarithmsWithAMeanAreOfTheSixthFormat) {
  Recipe recipe = Example();
  recipe.dense[0].mean = 3.5;
  recipe.dense[0].deviation = 1.25;
  const std::string text = FormatRecipe(recipe);
  EXPECT_THAT(text, HasSubstr("\"format\": 6"));
  const absl::StatusOr<Recipe> read = ParseRecipe(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->dense[0].mean, 3.5);
  EXPECT_EQ(read->dense[0].deviation, 1.25);
  EXPECT_EQ(FormatRecipe(*read), text);
  EXPECT_THAT(RecipeDifference(recipe, Example()), HasSubstr("dense[0] (age).mean is 3.5"));
  recipe.dense[0].deviation = 0;
  EXPECT_THAT(std::string(ParseRecipe(FormatRecipe(recipe)).status().message()),
              HasSubstr("deviation"));
}

TEST(Recipe, WeightsOfKeysAreOfTheFifthFormat) {
  for (const char* const column : {"", "shares"}) {
    Recipe recipe = Example();
    recipe.layout.columns.push_back("shares");
    recipe.slots[2].key_weights = true;
    recipe.slots[2].weight_column = column;
    recipe.slots[2].weights = *column == 0;
    const std::string text = FormatRecipe(recipe);
    EXPECT_THAT(text, HasSubstr("\"format\": 5"));
    const absl::StatusOr<Recipe> read = ParseRecipe(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(FormatRecipe(*read), text);
    EXPECT_TRUE(HasKeyWeights(*read));
    EXPECT_THAT(RecipeDifference(recipe, Example()), HasSubstr("slots[2] (tags)."));
    const std::vector<std::string> columns = FeatureColumns(recipe);
    EXPECT_EQ(std::count(columns.begin(), columns.end(), "shares"), *column == 0 ? 0 : 1);
  }
  Recipe marked = Example();
  marked.slots[2].key_weights = marked.slots[2].weights = true;
  EXPECT_EQ(FormatRecipe(marked).find("weight_mark"), std::string::npos);
  for (const char mark : {'=', '('}) {
    marked.slots[2].weight_mark = mark;
    const absl::StatusOr<Recipe> read = ParseRecipe(FormatRecipe(marked));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->slots[2].weight_mark, mark);
  }
  marked.slots[2].weight_mark = '/';
  EXPECT_THAT(std::string(ParseRecipe(FormatRecipe(marked)).status().message()),
              HasSubstr("weight_mark"));
  // Weights from nowhere, from two places, without values, or that nothing uses.
  const std::function<void(Recipe::Slot&)> changes[] = {
      [](Recipe::Slot& slot) { slot.key_weights = true; },
      [](Recipe::Slot& slot) {
        slot.key_weights = slot.weights = true;
        slot.weight_column = "pay";
      },
      [](Recipe::Slot& slot) {
        slot.key_weights = slot.weights = true;
        slot.separator = {};
      },
      [](Recipe::Slot& slot) { slot.weight_column = "pay"; }};
  for (const auto& change : changes) {
    Recipe recipe = Example();
    change(recipe.slots[2]);
    EXPECT_THAT(std::string(ParseRecipe(FormatRecipe(recipe)).status().message()),
                HasSubstr("key_weights"));
  }
}

}  // namespace
}  // namespace cistern::data
