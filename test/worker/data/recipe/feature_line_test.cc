#include "worker/data/recipe/feature_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Fields = std::vector<std::string>;

// The fields of a line without its label; the code and message of an error.
absl::StatusOr<Fields> FieldsOf(FeatureLine& line, absl::string_view features, TextFormat format) {
  const std::vector<absl::string_view> tokens = LineTokens(features, format);
  std::vector<absl::string_view> fields;
  CISTERN_RETURN_IF_ERROR(line.Split(tokens, &fields));
  return Fields(fields.begin(), fields.end());
}
absl::StatusOr<Fields> Libsvm(absl::string_view features, FeatureValues values, size_t slots) {
  return FieldsOf(*NewLibsvmLine(values, slots), features, TextFormat::kLibsvm);
}
std::string ErrorOf(const absl::StatusOr<Fields>& fields) {
  EXPECT_EQ(fields.status().code(), absl::StatusCode::kDataLoss);
  return std::string(fields.status().message());
}

TEST(FeatureLine, ALineOfLibsvmHasAFieldPerSlotOrOneForAll) {
  EXPECT_THAT(*Libsvm("7:1 9:1", FeatureValues::kOnes, 2), ElementsAre("7", "9"));
  EXPECT_THAT(*Libsvm("7:1 9:1 # a comment 5:1", FeatureValues::kOnes, 0), ElementsAre("7 9"));
  EXPECT_THAT(*Libsvm("qid:3 7:1", FeatureValues::kOnes, 1), ElementsAre("7"));
  EXPECT_THAT(*Libsvm("", FeatureValues::kOnes, 0), ElementsAre(""));
}

TEST(FeatureLine, ValuesAreWeightsOrDroppedOrOne) {
  const char* const line = "7:0.5 9:-2 11:0 13:1e-3";
  EXPECT_THAT(*Libsvm(line, FeatureValues::kWeights, 0), ElementsAre("7:0.5 9:-2 13:1e-3"));
  EXPECT_THAT(*Libsvm(line, FeatureValues::kIgnored, 0), ElementsAre("7 9 13"));
  EXPECT_THAT(*Libsvm(line, FeatureValues::kIgnored, 4), ElementsAre("7", "9", "", "13"));
  const auto refused = Libsvm(line, FeatureValues::kOnes, 0);
  EXPECT_THAT(ErrorOf(refused), HasSubstr("feature 0 is '7:0.5'"));
  EXPECT_THAT(OptionsOf(refused.status()), ElementsAre("key_weights='*'", "any_value"));
}

// What a recipe fixed is not offered again: its fix is another model.
TEST(FeatureLine, ARecipeOfOnesAsksForAnotherModel) {
  Recipe recipe;
  recipe.layout.format = TextFormat::kLibsvm;
  EXPECT_EQ(FeatureValuesOf(recipe), FeatureValues::kOnesOfModel);
  EXPECT_THAT(*Libsvm("7:1 9:1", FeatureValues::kOnesOfModel, 2), ElementsAre("7", "9"));
  for (const auto& [line, slots, error] :
       {std::tuple("7:2", 0, "as all were in the data that this model was made of"),
        std::tuple("7:1", 2,
                   "has 1 features, but each line of the data that this model was made")}) {
    const auto refused = Libsvm(line, FeatureValues::kOnesOfModel, static_cast<size_t>(slots));
    EXPECT_THAT(ErrorOf(refused), HasSubstr(error));
    EXPECT_THAT(OptionsOf(refused.status()), ElementsAre("key_weights='*'"));
  }
  recipe.layout.any_value = true;
  EXPECT_EQ(FeatureValuesOf(recipe), FeatureValues::kIgnored);
}

TEST(FeatureLine, ATokenOfAnotherFormIsNamed) {
  for (const char* const token : {"7", ":1", "7:", "7:abc", "7:nan", "7:inf", "7:1e999"}) {
    for (const FeatureValues values : {FeatureValues::kOnes, FeatureValues::kWeights}) {
      EXPECT_THAT(ErrorOf(Libsvm(token, values, 0)), HasSubstr(token)) << token;
    }
  }
  EXPECT_THAT(ErrorOf(Libsvm("7:1 0:7:1", FeatureValues::kOnes, 0)), HasSubstr("libffm"));
  EXPECT_THAT(ErrorOf(Libsvm("7:1", FeatureValues::kOnes, 2)), HasSubstr("has 1 features"));
  EXPECT_THAT(ErrorOf(Libsvm("7:1e39", FeatureValues::kWeights, 0)), HasSubstr("1e39"));
}

TEST(FeatureLine, ALineOfLibffmHasAFieldPerColumn) {
  const auto line = NewLibffmLine(FeatureValues::kWeights, {"label", "0", "2"});
  const auto fields = [&](const char* text) { return FieldsOf(*line, text, TextFormat::kLibffm); };
  EXPECT_THAT(*fields("2:9:0.5 0:7:1 2:11:3"), ElementsAre("7:1", "9:0.5 11:3"));
  EXPECT_THAT(*fields("0:8:1"), ElementsAre("8:1", "")) << "of the line before";
  EXPECT_THAT(ErrorOf(fields("1:7:1")), HasSubstr("has a field 1"));
  EXPECT_THAT(ErrorOf(fields("0:7")), HasSubstr("not field:feature:value"));
  absl::string_view field;
  EXPECT_TRUE(LibffmField("12:7:1", &field));
  EXPECT_EQ(field, "12");
  EXPECT_FALSE(LibffmField("12:7", &field));
}

TEST(FeatureLine, ALineOfVowpalWabbitHasAFieldPerNamespace) {
  const std::vector<std::string> columns = {"label", "features", "item", "user"};
  const auto fields = [&](const char* text, FeatureValues values = FeatureValues::kWeights) {
    return FieldsOf(*NewVwLine(values, columns), text, TextFormat::kVw);
  };
  EXPECT_THAT(*fields("|user u7 age:0.5 |item i3|user x:0 y"),
              ElementsAre("", "i3:1", "u7:1 age:0.5 y:1"));
  EXPECT_THAT(*fields("1 0 'tag| a |item b=2:-1e2 |user"), ElementsAre("a:1", "b=2:-1e2", ""));
  EXPECT_THAT(*fields("tag|user u", FeatureValues::kOnes), ElementsAre("", "", "u"));
  EXPECT_THAT(*fields("|user u:3 v:0", FeatureValues::kIgnored), ElementsAre("", "", "u"));
  EXPECT_THAT(ErrorOf(fields("|user u:3", FeatureValues::kOnes)), HasSubstr("'u:3'"));
  EXPECT_THAT(ErrorOf(fields("|city u")), HasSubstr("has a namespace city"));
  for (const char* const token : {"u:", ":1", "u:x", "u:v:1", "u:nan"}) {
    EXPECT_THAT(ErrorOf(fields(absl::StrCat("|user ", token).c_str())), HasSubstr(token));
  }
  EXPECT_THAT(ErrorOf(fields("2.5 |user u")), HasSubstr("its importance is '2.5'"));
  EXPECT_THAT(ErrorOf(fields("1 0.5 |user u")), HasSubstr("its initial prediction is '0.5'"));
  EXPECT_THAT(ErrorOf(fields("x |user u")), HasSubstr("'x' before its first namespace"));
  EXPECT_THAT(ErrorOf(fields("|user:2 u")), HasSubstr("'user:2' has a factor"));
}

TEST(FeatureLine, ALabelIsNoFeature) {
  EXPECT_TRUE(HasLabel({"1", "7:1"}));
  EXPECT_TRUE(HasLabel({"-1", "'tag|a"}));
  EXPECT_FALSE(HasLabel({"7:1"}));
  EXPECT_FALSE(HasLabel({"|a", "b"}));
  EXPECT_FALSE(HasLabel({}));
}

TEST(FeatureLine, TokensAreBetweenSpacesAndTabs) {
  EXPECT_THAT(LineTokens(" 1\t7:1  9:1 ", TextFormat::kLibsvm), ElementsAre("1", "7:1", "9:1"));
  EXPECT_THAT(LineTokens("# 1 7:1", TextFormat::kLibsvm), IsEmpty());
  EXPECT_THAT(LineTokens("1 0:7:1 #2", TextFormat::kLibffm), ElementsAre("1", "0:7:1", "#2"));
}

}  // namespace
}  // namespace cistern::data
