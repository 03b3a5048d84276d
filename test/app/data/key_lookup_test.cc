#include "app/data/key_lookup.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "app/data/convert_data.h"
#include "app/data/key_texts.h"
#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KeyLookups : public TextFixture {
 protected:
  void SetUp() override {
    ConvertDataOptions options;
    options.input = {Write("a", 400)};
    options.out = In("data");
    options.label = {"click"};
    options.dense = {"price"};
    options.sparse = {"user", "user"};
    options.bucket = {};
    ASSERT_TRUE(ConvertData(options, {}).ok());
    options_.recipe = In("data");
  }
  // The rows in which user is `number`, as the fixture writes them.
  static uint64_t RowsOf(int number) {
    uint64_t rows = 0;
    for (int i = 0; i < 400; ++i) rows += i * 7 % 19 == number;
    return rows;
  }

  KeyLookupOptions options_;
};

TEST_F(KeyLookups, FindTheTextsOfKeysInTables) {
  options_.texts = {{"user", "u3"}, {"user", "u5"}};
  const absl::StatusOr<KeyLookup> keys = LookUpKeys(options_, {});
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_GE(keys->found.size(), 2u);
  const Key three = keys->found[0].key;
  EXPECT_NE(three, keys->found.back().key);
  options_.texts = {};
  options_.keys = {three, 12345};
  options_.tables = {In("a.csv")};
  const absl::StatusOr<KeyLookup> texts = LookUpKeys(options_, {});
  ASSERT_TRUE(texts.ok()) << texts.status();
  ASSERT_EQ(texts->found.size(), 1u);
  EXPECT_EQ(texts->found[0].text, "u3");
  EXPECT_EQ(texts->found[0].rows % RowsOf(3), 0u);  // once for each slot of the column
  EXPECT_THAT(texts->absent, ElementsAre(12345));
  EXPECT_EQ(JsonOf(*texts)["found"][0]["column"], "user");
}

TEST_F(KeyLookups, SearchPartsOfJsonThatLackAMember) {
  const auto write = [this](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(In("parts"));
    std::ofstream(In("parts/" + name)) << text;
  };
  write("0.jsonl", R"({"click":1,"price":2.5,"user":"u3"})"
                   "\n"
                   R"({"click":0,"price":1,"user":"u5"})"
                   "\n");
  write("1.jsonl", R"({"click":1,"user":"u3"})"
                   "\n");
  options_.texts = {{"user", "u3"}};
  options_.tables = {In("parts")};
  const absl::StatusOr<KeyLookup> found = LookUpKeys(options_, {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->found.front().rows, 4u);  // two rows, in each of the two slots
}

TEST_F(KeyLookups, NeedATableForKeysAndARecipe) {
  options_.keys = {7};
  EXPECT_THAT(OptionsOf(LookUpKeys(options_, {}).status()), ElementsAre("input"));
  options_.tables = {In("missing.csv")};
  EXPECT_TRUE(absl::IsInvalidArgument(LookUpKeys(options_, {}).status()));
  options_ = {};
  options_.recipe = In("nowhere");
  options_.texts = {{"user", "u3"}};
  EXPECT_TRUE(absl::IsInvalidArgument(LookUpKeys(options_, {}).status()));
}

TEST_F(KeyLookups, NameTheKeysOfAReport) {
  options_.texts = {{"user", "u3"}, {"user", ""}};
  const absl::StatusOr<KeyLookup> keys = LookUpKeys(options_, {});
  ASSERT_TRUE(keys.ok()) << keys.status();
  report::RunView run;
  run.folder = In("data");
  EXPECT_TRUE(TextsOfKeys(run, {}, {})->empty());  // nothing was studied
  run.study.emplace().slots.emplace_back().worst.emplace_back().key = keys->found[0].key;
  EXPECT_TRUE(TextsOfKeys(run, {}, {})->empty());  // the recipe alone does not tell
  const absl::StatusOr<report::KeyTexts> texts = TextsOfKeys(run, {In("a.csv")}, {});
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_THAT(*texts, ElementsAre(testing::Pair(std::pair("user", keys->found[0].key), "u3")));
}

}  // namespace
}  // namespace cistern::app
