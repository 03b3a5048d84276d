#include "worker/data/recipe/text_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_split.h"
#include "worker/data/recipe/recipe.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(TextFormat, ListsItsWords) {
  EXPECT_THAT(TextFormatWords(), ElementsAre(Pair(testing::StrEq("csv"), TextFormat::kCsv),
                                             Pair(testing::StrEq("tsv"), TextFormat::kTsv),
                                             Pair(testing::StrEq("libsvm"), TextFormat::kLibsvm),
                                             Pair(testing::StrEq("libffm"), TextFormat::kLibffm),
                                             Pair(testing::StrEq("criteo"), TextFormat::kCriteo)));
  EXPECT_EQ(TextFormatWords(/*packed=*/true).size(), 4u);
}

TEST(TextFormat, EntriesDifferAndAreWhole) {
  std::set<std::string> words, extensions;
  for (const TextFormatEntry& entry : TextFormats()) {
    EXPECT_EQ(&EntryOf(entry.format), &entry) << entry.word;
    EXPECT_TRUE(words.insert(entry.word).second) << entry.word;
    for (const auto extension : absl::StrSplit(entry.extensions, ' ', absl::SkipEmpty())) {
      EXPECT_TRUE(extensions.insert(std::string(extension)).second) << extension;
    }
    EXPECT_NE(entry.open, nullptr) << entry.word;
    EXPECT_EQ(entry.features != nullptr, entry.has_features()) << entry.word;
    EXPECT_TRUE(entry.has_features() || !entry.by_position) << entry.word;
  }
}

TEST(TextFormat, FeaturesAreOfTheFormatWithTheirColons) {
  EXPECT_EQ(FindFeatureFormat({"7:1", "9:0.5"}), &EntryOf(TextFormat::kLibsvm));
  EXPECT_EQ(FindFeatureFormat({"1:7:1", "2:9:1"}), &EntryOf(TextFormat::kLibffm));
  EXPECT_EQ(FindFeatureFormat({"7:1", "2:9:1"}), nullptr);
  EXPECT_EQ(FindFeatureFormat({"7:1", "age:9"}), nullptr);
  EXPECT_EQ(FindFeatureFormat({"7", "9"}), nullptr);
  EXPECT_EQ(FindFeatureFormat({"1:2:3:4"}), nullptr);
  EXPECT_EQ(FindFeatureFormat({}), nullptr);
}

TEST(TextFormat, RecipesKeepEach) {
  for (const TextFormatEntry& entry : TextFormats()) {
    Recipe recipe;
    recipe.layout = {entry.format, ';', true, entry.by_position, false, {"label", "0"}};
    recipe.labels = {{"label", {}, {}}};
    recipe.slots = {{"0"}};
    const absl::StatusOr<Recipe> read = ParseRecipe(FormatRecipe(recipe));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->layout.format, entry.format) << entry.word;
    EXPECT_EQ(read->layout.single_slot, entry.by_position) << entry.word;
    EXPECT_EQ(DelimiterOf(read->layout), entry.has_features() ? ' ' : ';') << entry.word;
  }
}

}  // namespace
}  // namespace cistern::data
