#include "worker/data/recipe/text_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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
                                             Pair(testing::StrEq("vw"), TextFormat::kVw),
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
    EXPECT_TRUE(entry.has_features() || (!entry.by_position && !entry.names && entry.colons == 0))
        << entry.word;
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

// A program that does not know the word of a format refuses the recipe by its number.
TEST(TextFormat, ARecipeIsNoOlderThanItsFormat) {
  for (const TextFormatEntry& entry : TextFormats()) {
    for (const bool weights : {false, true}) {
      Recipe recipe;
      recipe.layout.format = entry.format;
      recipe.slots = {{"0"}};
      recipe.slots[0].key_weights = weights;
      const std::string text = FormatRecipe(recipe);
      uint64_t format = 0;
      const std::string member = "\"format\": ";
      ASSERT_TRUE(absl::SimpleAtoi(text.substr(text.find(member) + member.size(), 1), &format))
          << text;
      EXPECT_GE(format, entry.recipe_format) << entry.word;
    }
  }
}

TEST(TextFormat, TheDocumentationListsEach) {
  std::ifstream file(CISTERN_SOURCE_DIR "/docs/formats.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const size_t begin = all.find("\n| `format` | `csv`");
  ASSERT_NE(begin, std::string::npos);
  const std::string row = all.substr(begin, all.find('\n', begin + 1) - begin);
  for (const TextFormatEntry& entry : TextFormats()) {
    const std::string since =
        entry.recipe_format > 1 ? absl::StrCat(" (", entry.recipe_format, ")") : "";
    EXPECT_NE(row.find(absl::StrCat("`", entry.word, "`", since)), std::string::npos)
        << entry.word << ": add it to 'Recipe' of docs/formats.md";
  }
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
