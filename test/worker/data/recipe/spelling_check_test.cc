#include "worker/data/recipe/spelling_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A slot of items and one of several tags; the training data has these values.
class SpellingCheckTest : public testing::Test {
 protected:
  SpellingCheckTest() : SpellingCheckTest({"i17", "Rome", "1047", "7", "new york"}) {}
  explicit SpellingCheckTest(std::initializer_list<const char*> items) : vocabulary_("hash 64") {
    Recipe recipe;
    recipe.slots = {{"item", false, {}}, {"tags", false, '|'}};
    recipe.vocabulary_xxh3 = 1;
    const RowEncoder counter(recipe, nullptr);
    EncoderWork work = counter.NewWork();
    for (const char* const item : items) {
      EXPECT_TRUE(counter.Count({item, "t1|t2|t3"}, kPlaces, &work, &vocabulary_).ok());
    }
    encoder_.emplace(recipe, &vocabulary_);
  }

  // The sentences after `rows` rows with these fields and as many with known ones.
  std::vector<std::string> SentencesOf(absl::string_view item, absl::string_view tags,
                                       size_t rows = 50, absl::string_view known = "i17") const {
    SpellingCheck check(*encoder_);
    for (size_t i = 0; i < rows; ++i) {
      check.Add({item, tags}, kPlaces);
      check.Add({known, "t1|t3"}, kPlaces);
    }
    return check.Sentences();
  }

  inline static const RowPlaces kPlaces = {{}, RowPlaces::kAbsent, {}, {{0}, {1}}};
  Vocabulary vocabulary_;
  std::optional<RowEncoder> encoder_;
};

TEST_F(SpellingCheckTest, FindsKnownValuesInOtherWords) {
  const std::pair<const char*, const char*> cases[] = {
      {"I17", "i17"},     {" i17 ", "i17"},    {"i17\xc2\xa0", "i17"},   {"'i17'", "i17"},
      {"b'i17'", "i17"},  {"=\"i17\"", "i17"}, {"['i17']", "i17"},       {"'i17", "i17"},
      {"1047.0", "1047"}, {"001047", "1047"},  {"1.047e3", "1047"},      {"rome", "Rome"},
      {"ROME ", "Rome"},  {"i17:0.5", "i17"},  {"New York", "new york"}, {"[7]", "7"},
      {"\"i17\"", "i17"}};
  for (const auto& [text, known] : cases) {
    EXPECT_THAT(SentencesOf(text, "t1|t2"),
                ElementsAre(HasSubstr(absl::StrCat("but knows '", known, "'")), IsEmpty()))
        << text;
  }
}

TEST_F(SpellingCheckTest, FindsTheEndsOfAListInBrackets) {
  for (const char* const text : {"[t1|t3", "t1|t3]", "[t1|t2]", "{t2|t1}", "(t1|t1)"}) {
    EXPECT_THAT(SentencesOf("i17", text), ElementsAre(IsEmpty(), HasSubstr("but knows 't")))
        << text;
  }
}

TEST_F(SpellingCheckTest, FindsIdsOfAnotherForm) {
  for (const char* const text : {"u1047", "user_1047", "item:1047", "a/b-1047", "0x417", "0X417",
                                 "1,047", "1.047", "1 047", "1'047", "1_047",
                                 "1\xc2\xa0"
                                 "047"}) {
    EXPECT_THAT(SentencesOf(text, "t1", 50, "1047"),
                ElementsAre(HasSubstr("but knows '1047'"), IsEmpty()))
        << text;
  }
}

TEST_F(SpellingCheckTest, FindsValuesWithAPrefix) {
  EXPECT_THAT(SentencesOf("item:i17", "tag=t1|tag=t2"),
              ElementsAre(HasSubstr("but knows 'i17'"), HasSubstr("but knows 't1'")));
}

TEST_F(SpellingCheckTest, IsSilentAboutFormsThatKnownValuesHave) {
  EXPECT_THAT(SentencesOf("u1047", "t1"), ElementsAre(IsEmpty(), IsEmpty()));  // as i17
  for (const char* const text : {"1,04", "10,47", "1,0477", "u1048", "0x418", "1,048", "1047x"}) {
    EXPECT_THAT(SentencesOf(text, "t1", 50, "1047"), ElementsAre(IsEmpty(), IsEmpty())) << text;
  }
}

// The training data has the longer form.
class LongIdTest : public SpellingCheckTest {
 protected:
  LongIdTest() : SpellingCheckTest({"i17", "item_9", "0x417"}) {}
};

TEST_F(LongIdTest, FindsIdsWithoutTheirMarks) {
  for (const auto& [text, known] : {std::pair("17", "i17"), {"9", "item_9"}, {"1047", "0x417"}}) {
    EXPECT_THAT(SentencesOf(text, "t1"),
                ElementsAre(HasSubstr(absl::StrCat("but knows '", known, "'")), IsEmpty()))
        << text;
  }
}

TEST_F(SpellingCheckTest, FindsKnownValuesBetweenOtherSeparators) {
  for (const char* const text :
       {"t1,t2", "['t1', 't2']", "t1 t2", "t1; t2", "{t1,t2}", "t1/t2", "t1:0.5,t2:1",
        "[\"t1\" \"t2\"]", "t1^t3", "t1 - t3", "t1\nt2", "t1_t2", "#t1 #t3"}) {
    EXPECT_THAT(SentencesOf("i17", text),
                ElementsAre(IsEmpty(), HasSubstr("such as 't1': write '|' between them")))
        << text;
  }
  EXPECT_THAT(SentencesOf("i17|Rome", "t1"),
              ElementsAre(HasSubstr("such as 'i17': a field holds one value"), IsEmpty()));
}

TEST_F(SpellingCheckTest, IsSilentAboutNewValuesAndAFew) {
  for (const char* const item : {"i17", "i18", "Rom", "new york", "i17 i18", "", "NA", "1048.0"}) {
    EXPECT_THAT(SentencesOf(item, "t1|t9|t9,t1"), ElementsAre(IsEmpty(), IsEmpty())) << item;
  }
  EXPECT_THAT(SentencesOf("I17", "t1,t2", 19), ElementsAre(IsEmpty(), IsEmpty()));
}

}  // namespace
}  // namespace cistern::data
