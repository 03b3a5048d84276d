// Texts that mean the same are the same; texts without a meaning are refused.
#include <gmock/gmock.h>

#include "test/worker/data/prepare/convert_fixture.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class ConvertMeaning : public ConvertTest {};

ConvertOptions YesAndNo() {
  ConvertOptions options;
  options.positive = {"yes"};
  options.negative = {"no"};
  return options;
}

TEST_F(ConvertMeaning, LabelsOfOneMeaningAreEqual) {
  ASSERT_TRUE(Run("label,a\nyes,1\nNO,1\nTrue,1\n0,1\n1.0,1\n f ,1\n", YesAndNo()).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0, 1, 0, 1, 0));
  ConvertOptions words;
  words.positive = {"Buyer"};
  words.negative = {"guest"};
  ASSERT_TRUE(Run("label,a\nbuyer,1\nGuest,1\n", words).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0));
  ConvertOptions numbers;
  numbers.positive = {"2"};
  numbers.negative = {"1"};
  ASSERT_TRUE(Run("label,a\n2.0,1\n01,1\n", numbers).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0));
}

TEST_F(ConvertMeaning, LabelsThatTrainingNeverSawAreRefused) {
  EXPECT_THAT(ErrorOf("label,a\nyes,1\nmaybe,1\n", YesAndNo()),
              HasSubstr("input: line 3: column 'label': the label 'maybe' is neither positive "
                        "('yes') nor negative ('no')"));
  ConvertOptions numbers;
  numbers.positive = {"2"};
  numbers.negative = {"1"};
  EXPECT_THAT(ErrorOf("label,a\ntrue,1\n", numbers), HasSubstr("the label 'true'"));
  // Positive texts alone: all others are negative, but not another spelling of a positive one.
  ConvertOptions alone;
  alone.positive = {"yes"};
  EXPECT_THAT(ErrorOf("label,a\nYes,1\n", alone), HasSubstr("means the same as a positive text"));
  ASSERT_TRUE(Run("label,a\nyes,1\nperhaps,1\n", alone).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0));
}

TEST_F(ConvertMeaning, OneOfSeveralLabelsCanBeUnknown) {
  ConvertOptions options;
  options.label = {"click", "buy"};
  ASSERT_TRUE(Run("click,buy,a\n1,0,u\n0,-1,u\n0,,u\n", options).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0, 0, -1, 0, -1));
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("click,buy,a\n1,-2,u\n", options), HasSubstr("not known is -1 or empty"));
}

TEST_F(ConvertMeaning, NumbersAreReadInTheirForm) {
  ConvertOptions options;
  options.dense = {"x"};
  options.dense_missing = -7;
  options.bucket = options.sparse = {"x"};
  options.numbers["x"] = {',', '.', "%", {"k.A."}};
  options.numbers["label"] = {};  // not read as a number: no part of the recipe
  ASSERT_TRUE(Run("label;x\n1;1.234,5 %\n1;k.A.\n1;3\n1;-0,5%\n",
                  [&] {
                    options.delimiter = ';';
                    return options;
                  }())
                  .ok());
  EXPECT_THAT(block_.dense, ElementsAre(1234.5f, -7, 3, -0.5f));
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("x=b50")));  // ln(1234.5)^2 = 50.67
  EXPECT_TRUE(Slot(1, 0).empty());
  EXPECT_THAT(Slot(2, 0), ElementsAre(Hash64("x=b1")));
  EXPECT_THAT(Slot(3, 0), ElementsAre(Hash64("x=-1")));
  // The recipe keeps the form; other days may lack the unit, or have another word for none.
  ConvertOptions again;
  again.recipe = scratch_.Path("out");
  again.out = scratch_.Path("again");
  again.input = {scratch_.Write("later", "label,x\n1,\"1,5\"\n1,-\n1,#N/A\n1,unknown\n")};
  ASSERT_TRUE(Run(again).ok());
  EXPECT_THAT(block_.dense, ElementsAre(1.5f, -7, -7, -7));
  again.input = {scratch_.Write("later", "label,x\n1,5 lb\n")};
  EXPECT_THAT(std::string(Run(again).message()), HasSubstr("'5 lb' is not a number"));
}

TEST_F(ConvertMeaning, SlotsCanShareKeys) {
  ConvertOptions options;
  options.share = {"user,friend"};
  options.min_count = 2;
  options.missing = StandIn::kKey;
  ASSERT_TRUE(
      Run("label,user,friend,item\n1,u1,u2,u1\n0,u2,u1,u1\n1,u3,u4,u1\n0,,,\n", options).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("user=u1")));
  EXPECT_THAT(Slot(1, 1), ElementsAre(Hash64("user=u1")));  // u1 occurs twice, in both together
  EXPECT_THAT(Slot(0, 2), ElementsAre(Hash64("item=u1")));
  EXPECT_THAT(Slot(2, 1), ElementsAre(Hash64("friend<rare>")));
  EXPECT_THAT(Slot(3, 1), ElementsAre(Hash64("friend=")));
  ConvertOptions again;
  again.recipe = scratch_.Path("out");
  again.out = scratch_.Path("again");
  again.input = {scratch_.Write("later", "label,user,friend,item\n1,u3,u1,u1\n")};
  ASSERT_TRUE(Run(again).ok());
  EXPECT_THAT(Slot(0, 1), ElementsAre(Hash64("user=u1")));
}

TEST_F(ConvertMeaning, SlotsThatShareMustBeSlots) {
  const char* const text = "label,user,friend,x\n1,u1,u2,3\n";
  ConvertOptions options;
  options.dense = {"x"};
  for (const auto& [share, why] :
       {std::pair("user", "needs several columns"), std::pair("user,x", "'x' is not a slot"),
        std::pair("user,user", "'user' is repeated"), std::pair("user,pal", "no column 'pal'")}) {
    options.share = {share};
    EXPECT_THAT(ErrorOf(text, options), HasSubstr(why));
  }
  options.share = {"user,friend"};
  options.keys = KeyMode::kRaw;
  EXPECT_THAT(ErrorOf(text, options), HasSubstr("raw keys are equal in all columns anyway"));
}

TEST_F(ConvertMeaning, NumbersThatAreNoneAreMissing) {
  ConvertOptions options;
  options.dense = {"x"};
  options.dense_missing = -7;
  options.bucket = {"x"};
  options.sparse = {"x"};
  ASSERT_TRUE(
      Run("label,x\n1,NULL\n1,inf\n1,-Infinity\n1,nan\n1,1e400\n1,3\n1,1e20\n", options).ok());
  EXPECT_THAT(block_.dense, ElementsAre(-7, -7, -7, -7, -7, 3, 1e20f));
  EXPECT_EQ(summary_.dense[0].missing, 5u);
  EXPECT_THAT(Slot(0, 0), ElementsAre());
  // Beyond 1e15 is the last bucket: floor(ln(1e15)^2) = 1192.
  EXPECT_THAT(Slot(6, 0), ElementsAre(Hash64("x=b1192")));
}

TEST_F(ConvertMeaning, BlankFieldsAreMissingIfTheListSaysSo) {
  ConvertOptions options;
  options.missing_values = {" ", "NA"};
  ASSERT_TRUE(Run("label,a\n1,  \n1,NA\n1,x y\n", options).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre());
  EXPECT_THAT(Slot(1, 0), ElementsAre());
  EXPECT_THAT(Slot(2, 0), ElementsAre(Hash64("a=x y")));
}

TEST_F(ConvertMeaning, IntegersHaveOneKeyHoweverTheyAreWritten) {
  ConvertOptions options;
  options.integers = {"a"};
  ASSERT_TRUE(Run("label,a\n1,1047\n1,1047.0\n1,1.047e3\n1,10.5\n", options).ok());
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(Slot(i, 0), ElementsAre(Hash64("a=1047")));
  EXPECT_THAT(Slot(3, 0), ElementsAre(Hash64("a=10.5")));
  ConvertOptions raw = Raw();
  ASSERT_TRUE(Run("label,a\n1,1047.0\n", raw).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(1047));
}

TEST_F(ConvertMeaning, NumbersBeyondTheBoundsCountAsTheBounds) {
  ConvertOptions options;
  options.dense = {"x"};
  options.bounds = {{"x", {0, 10}}};
  options.dense_transform = DenseTransform::kStandardize;
  ASSERT_TRUE(Run("label,x,a\n1,-9999,u\n1,5,u\n1,1e30,u\n", options).ok());
  // Of 0, 5, 10: mean 5, deviation sqrt(50 / 3).
  const float one = static_cast<float>(5 / std::sqrt(50.0 / 3));
  EXPECT_THAT(block_.dense, ElementsAre(-one, 0, one));
}

TEST_F(ConvertMeaning, HeaderLinesBetweenTheRowsAreSkipped) {
  ConvertOptions options;
  ASSERT_TRUE(Run("label,a\n1,u\nlabel,a\n\xEF\xBB\xBFlabel,a\n0,v\n", options).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0));
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("label,a,b\n1,u,v\nlabel,b,a\n0,v,u\n", options),
              HasSubstr("line 3: is a header line with the columns in another order"));
}

TEST_F(ConvertMeaning, LaterDataExtendsTheVocabulary) {
  ConvertOptions first;
  first.min_count = 2;
  first.rare_out = scratch_.Path("rare");
  first.out = scratch_.Path("run");
  std::filesystem::create_directory(first.out);
  first.input = {scratch_.Write("day1", "label,a\n1,old\n0,old\n1,rare\n")};
  ASSERT_TRUE(FitRecipe(first).ok());

  ConvertOptions more;
  more.recipe = first.out;
  more.out = scratch_.Path("next");
  std::filesystem::create_directory(more.out);
  more.rare_in = {first.rare_out};
  more.input = {scratch_.Write("day2", "label,a\n1,new\n0,new\n1,rare\n1,once\n1,old\n")};
  std::vector<GrownColumn> grown;
  absl::StatusOr<Recipe> extended = ExtendRecipe(more, &grown);
  ASSERT_TRUE(extended.ok()) << extended.status();
  ASSERT_EQ(grown.size(), 1u);
  EXPECT_EQ(grown[0].column, "a");
  EXPECT_EQ(grown[0].keys, 2u);  // new, and rare: once on each day
  EXPECT_EQ(grown[0].values, 5u);
  EXPECT_EQ(grown[0].unknown, 4u);  // all but old
  EXPECT_DOUBLE_EQ(grown[0].rare_before, 1.0 / 3);
  ASSERT_EQ(extended->history.extends.size(), 1u);

  ConvertOptions encode;
  encode.recipe = more.out;
  ASSERT_TRUE(Run("label,a\n1,old\n1,new\n1,rare\n1,once\n", encode).ok());
  EXPECT_THAT(block_.sparse[0].keys,
              ElementsAre(Hash64("a=old"), Hash64("a=new"), Hash64("a=rare"), Hash64("a<rare>")));
  // The same data again adds nothing, to the first recipe or to the extended one.
  for (const std::string& base : {first.out, more.out}) {
    ConvertOptions again = more;
    again.recipe = base;
    again.out = scratch_.Path("again");
    std::filesystem::create_directory(again.out);
    const absl::StatusOr<Recipe> same = ExtendRecipe(again, &grown);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_EQ(FormatRecipe(*same), FormatRecipe(*extended));
    EXPECT_EQ(scratch_.Read("again/vocabulary.txt"), scratch_.Read("next/vocabulary.txt"));
  }
  // The data set itself can bring the extension.
  more.out = scratch_.Path("set");
  more.extend = true;
  more.rare_in.clear();
  ASSERT_TRUE(Run(more).ok());
  EXPECT_THAT(summary_.added, ElementsAre(Pair("a", 1)));
  EXPECT_EQ(summary_.slots[0].spelling, "");
  // It says which values the recipe knew in another spelling.
  std::string day = "label,a\n";
  for (int i = 0; i < 20; ++i) day += "1,OLD\n0,old\n";
  more.input = {scratch_.Write("day3", day)};
  more.out = scratch_.Path("other");
  ASSERT_TRUE(Run(more).ok());
  EXPECT_THAT(summary_.slots[0].spelling, testing::HasSubstr("such as 'OLD', but knows 'old'"));
}

TEST_F(ConvertMeaning, TheWeightOfARowIsOneMoreLabel) {
  ConvertOptions options;
  options.weight = "w";
  ASSERT_TRUE(Run("label,w,a\n1,2.5,x\n0,0,x\n0,1e9,y\n", options).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 2.5f, 0, 0, 0, 1e9f));
  EXPECT_EQ(summary_.shape.label_dim, 2u);
  EXPECT_TRUE(summary_.shape.weighted);
  EXPECT_EQ(summary_.positives, 1u);
  ASSERT_EQ(summary_.slots.size(), 1u);  // the weight is no slot
  // The recipe has it for other data.
  ConvertOptions other;
  other.recipe = summary_.recipe;
  other.out = scratch_.Path("other");
  ASSERT_TRUE(Run("a,w,label\nx,3,1\n", other).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 3));
  EXPECT_THAT(std::string(Run("a,label\nx,1\n", other).message()),
              HasSubstr("there is no column 'w', which the recipe reads (the weight)"));
}

TEST_F(ConvertMeaning, TextsThatAreNoWeightsAreRefusedWithTheirPlace) {
  ConvertOptions options;
  options.weight = "w";
  const std::pair<const char*, const char*> cases[] = {
      {"-1", "input: line 3: column 'w': the weight is -1: a weight is a number from 0 to 1e+09"},
      {"nan", "line 3: column 'w': the weight is nan"},
      {"inf", "line 3: column 'w': the weight is inf"},
      {"1e10", "line 3: column 'w': the weight is 1e10"},
      {"heavy", "line 3: column 'w': 'heavy' is not a number: a weight is"},
      {"", "line 3: column 'w': the weight is missing"}};
  for (const auto& [text, error] : cases) {
    EXPECT_THAT(ErrorOf(absl::StrCat("label,w,a\n1,1,x\n1,", text, ",x\n"), options),
                HasSubstr(error));
  }
  const std::string rows = "label,w,a\n1,1,x\n";
  options.weight = "v";
  EXPECT_THAT(ErrorOf(rows, options), HasSubstr("no column 'v'"));
  options.weight = "label";
  EXPECT_THAT(ErrorOf(rows, options), HasSubstr("weight: column 'label' is a label already"));
  options.weight = "w";
  options.dense = {"w"};
  EXPECT_THAT(ErrorOf(rows, options), HasSubstr("weight: column 'w' is a feature already"));
  options.dense.clear();
  options.ignore = {"w"};
  EXPECT_THAT(ErrorOf(rows, options), HasSubstr("weight: column 'w' is ignored already"));
}

}  // namespace
}  // namespace cistern::data
