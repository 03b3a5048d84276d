// Converts text to samples; checks every option against keys and numbers computed here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test/worker/data/prepare/convert_fixture.h"
#include "worker/data/prepare/convert.h"
#include "worker/data/recipe/utf8_check.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(ConvertTest, RawCsvProducesExactlyTheseBytes) {
  for (bool sum : {false, true}) {
    for (bool wide : {false, true}) {
      ConvertOptions options = Raw();
      options.check = sum ? NormCheck::kSum : NormCheck::kNone;
      options.key_bits = wide ? 64 : 32;
      options.dense = {"age"};
      ASSERT_TRUE(Run("user,label,age,item\n7,1,2.5,4294967294\n8,0,,9\n", options).ok());
      EXPECT_EQ(scratch_.Read("out/part-00000.norm"),
                NormRecordBytes(sum, NormHeaderBytes(sum, 2, 1, 1, 2)) +
                    NormRecordBytes(sum, NormSampleBytes(wide, {1, 2.5f}, {{7}, {4294967294}})) +
                    NormRecordBytes(sum, NormSampleBytes(wide, {0, 0}, {{8}, {9}})));
      EXPECT_EQ(scratch_.Read("out/file_list.txt"), "1\npart-00000.norm\n");
    }
  }
}

TEST_F(ConvertTest, SummaryCountsTheInput) {
  ConvertOptions options = Raw();
  options.dense = {"age"};
  options.multi = {"tags"};
  ASSERT_TRUE(Run("user,label,age,tags\n7,1,2,1|2|3\n8,0,,\n7,1,,4\n", options).ok());
  EXPECT_EQ(summary_.samples, 3u);
  EXPECT_EQ(summary_.positives, 2u);
  EXPECT_EQ(summary_.files, 1u);
  EXPECT_EQ(summary_.max_keys, 4u);
  EXPECT_EQ(summary_.bytes, scratch_.Read("out/part-00000.norm").size());
  EXPECT_EQ(summary_.dense[0].missing, 2u);
  ASSERT_EQ(summary_.slots.size(), 2u);
  EXPECT_EQ(summary_.slots[0].column, "user");
  EXPECT_EQ(summary_.slots[0].distinct, 2u);
  EXPECT_EQ(summary_.slots[1].distinct, 4u);
  EXPECT_EQ(summary_.slots[1].missing, 1u);
  EXPECT_EQ(summary_.slots[1].max_keys, 3u);
}

TEST_F(ConvertTest, HashedKeysAreXxh3OfColumnAndText) {
  ASSERT_TRUE(Run("label,user\n1,anna\n0,7\n", {}).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("user=anna")));
  EXPECT_THAT(Slot(1, 0), ElementsAre(Hash64("user=7")));
  ConvertOptions narrow;
  narrow.key_bits = 32;
  ASSERT_TRUE(Run("label,user\n1,anna\n", narrow).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash32("user=anna")));
}

TEST_F(ConvertTest, CsvSupportsQuotesAndAllLineEnds) {
  const std::string text =
      "\xEF\xBB\xBF\"label\",\"a,b\",c\r\n"
      "1,\"x \"\"y\"\", z\",\"\"\r\n"
      "\r\n"
      "0,\"two\r\nlines\n\",5\" disk\n"
      "1,plain,";
  ConvertOptions options;
  options.missing = StandIn::kKey;
  ASSERT_TRUE(Run(text, options).ok());
  ASSERT_EQ(block_.size, 3u);
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("a,b=x \"y\", z")));
  EXPECT_THAT(Slot(0, 1), ElementsAre(Hash64("c=")));
  EXPECT_THAT(Slot(1, 0), ElementsAre(Hash64("a,b=two\r\nlines\n")));
  EXPECT_THAT(Slot(1, 1), ElementsAre(Hash64("c=5\" disk")));
  EXPECT_THAT(Slot(2, 0), ElementsAre(Hash64("a,b=plain")));
  EXPECT_THAT(Slot(2, 1), ElementsAre(Hash64("c=")));
}

TEST_F(ConvertTest, TsvTreatsQuotesAsText) {
  ConvertOptions options;
  options.format = TextFormat::kTsv;
  ASSERT_TRUE(Run("label\ta\n1\t\"x\n", options).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("a=\"x")));
}

TEST_F(ConvertTest, ColumnsNameAFileWithoutHeader) {
  ConvertOptions options = Raw();
  options.columns = {"label", "a"};
  options.delimiter = ';';
  ASSERT_TRUE(Run("1;2\n0;3\n", options).ok());
  EXPECT_EQ(block_.size, 2u);
}

TEST_F(ConvertTest, MissingFieldsGiveNoKeyOrTheKeyOfTheirColumn) {
  const std::string text = "label,x,a\n1,,\n0,NA,NA\n";
  ConvertOptions options;
  options.dense = {"x"};
  options.dense_missing = -1;
  options.missing_values = {"NA"};
  ASSERT_TRUE(Run(text, options).ok());
  EXPECT_THAT(block_.dense, ElementsAre(-1, -1));
  EXPECT_THAT(Slot(0, 0), ElementsAre());
  options.missing = StandIn::kKey;
  ASSERT_TRUE(Run(text, options).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("a=")));
  EXPECT_THAT(Slot(1, 0), ElementsAre(Hash64("a=")));
  EXPECT_EQ(summary_.slots[0].missing, 2u);
}

TEST_F(ConvertTest, Log1pTreatsNegativeNumbersAsZero) {
  ConvertOptions options;
  options.dense = {"x"};
  options.dense_transform = DenseTransform::kLog1p;
  ASSERT_TRUE(Run("label,x,a\n1,-3,1\n1,0,1\n1,+1000,1\n", options).ok());
  EXPECT_THAT(block_.dense, ElementsAre(0, 0, static_cast<float>(std::log(1001.0))));
}

TEST_F(ConvertTest, BucketsAreSquaresOfLogarithms) {
  ConvertOptions options;
  options.bucket = {"n"};
  // ln(3)^2 = 1.21, ln(1000)^2 = 47.7, ln(1e6)^2 = 190.9
  ASSERT_TRUE(Run("label,n\n0,3\n0,1000\n0,1000000\n0,2\n0,-2\n0,0.5\n", options).ok());
  const char* expected[] = {"n=b1", "n=b47", "n=b190", "n=2", "n=-2", "n=0"};
  for (size_t i = 0; i < 6; ++i) EXPECT_THAT(Slot(i, 0), ElementsAre(Hash64(expected[i]))) << i;
}

TEST_F(ConvertTest, SlotsAreInTheRequestedOrder) {
  ConvertOptions options = Raw();
  options.sparse = {"C3", "C1..C2", "C3"};
  options.ignore = {"id"};
  ASSERT_TRUE(Run("id,label,C1,C2,C3\nx,1,10,20,30\n", options).ok());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(30, 10, 20, 30));
  options.ignore = {};
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("id,label,C1,C2,C3\nx,1,10,20,30\n", options),
              HasSubstr("column 'id' has no role"));
  options.ignore = {"*"};
  EXPECT_TRUE(Run("id,label,C1,C2,C3\nx,1,10,20,30\n", options).ok());
}

TEST_F(ConvertTest, SeveralValuesOfAFieldBecomeSeveralKeys) {
  ConvertOptions options;
  options.multi = {"tags"};
  ASSERT_TRUE(Run("label,tags\n1,a|b||a\n0,|\n", options).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("tags=a"), Hash64("tags=b"), Hash64("tags=a")));
  EXPECT_THAT(Slot(1, 0), ElementsAre());
}

TEST_F(ConvertTest, RareValuesShareTheKeyOfTheirColumn) {
  const std::string text = "label,a,b\n1,x,x\n0,x,y\n1,z,y\n0,,y\n";
  ConvertOptions options;
  options.min_count = 2;
  ASSERT_TRUE(Run(text, options).ok());
  EXPECT_THAT(Slot(1, 0), ElementsAre(Hash64("a=x")));
  const std::vector<Key> rare_a = Slot(2, 0), rare_b = Slot(0, 1);
  ASSERT_EQ(rare_a.size(), 1u);
  ASSERT_EQ(rare_b.size(), 1u);
  EXPECT_NE(rare_a, rare_b);
  EXPECT_NE(rare_a[0], Hash64("a=z"));
  EXPECT_THAT(Slot(1, 1), ElementsAre(Hash64("b=y")));
  EXPECT_THAT(Slot(3, 0), ElementsAre());  // missing is not rare
  EXPECT_EQ(summary_.slots[0].rare, 1u);
  EXPECT_EQ(summary_.vocabulary, 2u);
  options.rare = StandIn::kNone;
  ASSERT_TRUE(Run(text, options).ok());
  EXPECT_THAT(Slot(2, 0), ElementsAre());
}

TEST_F(ConvertTest, StandardizesByTheRowsThatAreCounted) {
  ConvertOptions options;
  options.dense = {"x", "z"};
  options.dense_transform = DenseTransform::kStandardize;
  ASSERT_TRUE(Run("label,x,z,a\n1,2,5,k\n0,4,5,k\n1,,5,k\n0,6,5,k\n", options).ok());
  // mean 4, deviation sqrt(8 / 3); z does not vary
  const float one = static_cast<float>(2 / std::sqrt(8.0 / 3));
  EXPECT_THAT(block_.dense, ElementsAre(-one, 0, 0, 0, 0, 0, one, 0));
  options.fit_rows = 2;  // mean 3, deviation 1
  ASSERT_TRUE(Run("label,x,z,a\n1,2,5,k\n0,4,5,k\n1,,5,k\n0,6,5,k\n", options).ok());
  EXPECT_THAT(block_.dense, ElementsAre(-1, 0, 1, 0, 0, 0, 3, 0));
}

// Of numpy: (clip(x, low, high) - mean) / deviation of x = 1, 2, 3, 4, 6, 8, 10, and likewise of
// log1p(x); 0, the mean, where there is no number.
TEST_F(ConvertTest, PiecesAreTheNumberWithinThem) {
  ConvertOptions options;
  options.dense = {"x"};
  options.log1p = {"x"};
  options.dense_transform = DenseTransform::kStandardize;
  options.pieces = {{"x", {1, 3, 6, 10}}};
  ASSERT_TRUE(
      Run("label,x,a\n1,1,k\n0,2,k\n1,3,k\n0,4,k\n1,6,k\n0,8,k\n1,10,k\n0,,k\n", options).ok());
  ASSERT_EQ(block_.dense.size(), 8u * 4u);
  const double second[] = {-1.02062073, -1.02062073, -1.02062073, -0.30618622,
                           1.1226828,   1.1226828,   1.1226828,   0};
  const double third[] = {-0.58834841, -0.58834841, -0.58834841, -0.58834841,
                          -0.58834841, 0.78446454,  2.15727749,  0};
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(block_.dense[4 * i + 2], second[i], 1e-6) << i;
    EXPECT_NEAR(block_.dense[4 * i + 3], third[i], 1e-6) << i;
  }
  EXPECT_NEAR(block_.dense[1], -2.15727749, 1e-6);
  const double logarithm[] = {-1.63917306, -0.92082233, -0.41114438, -0.01580744,
                              0.58031062,  1.02555708,  1.38107951,  0};
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(block_.dense[4 * i], logarithm[i], 1e-6) << i;
}

TEST_F(ConvertTest, WhetherANumberIsMissingIsAFeature) {
  ConvertOptions options;
  options.dense = {"x"};
  options.told_missing = {"x"};
  options.dense_missing = 4;
  options.numbers["x"].none = {"-9"};
  ASSERT_TRUE(Run("label,x,a\n1,-7,k\n0,0,k\n1,,k\n0,-9,k\n1,1e30,k\n", options).ok());
  EXPECT_THAT(block_.dense, ElementsAre(-7, 0, 0, 0, 4, 1, 4, 1, 1e30f, 0));
}

TEST_F(ConvertTest, LabelsCanBeText) {
  ConvertOptions options;
  options.trim = true;
  options.positive = {">50K", ">50K."};
  options.label = {"income"};
  ASSERT_TRUE(Run("city, income\na, >50K\n b ,<=50K\nc, >50K.\n", options).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0, 1));
  EXPECT_THAT(Slot(1, 0), ElementsAre(Hash64("city=b")));
  options.label_threshold = 1;
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("income,city\n>50K,a\n", options),
              HasSubstr("positive texts are for text labels"));
}

TEST_F(ConvertTest, LeavesOutAShareOfTheNegativeRows) {
  std::string text = "label,a\n";
  for (int i = 0; i < 4000; ++i) absl::StrAppend(&text, i % 10 == 0, ",", i, "\n");
  ConvertOptions options;
  options.negative_rate = 0.25;
  ASSERT_TRUE(Run(text, options).ok());
  EXPECT_EQ(summary_.positives, 400u);
  EXPECT_EQ(summary_.samples + summary_.left_out, 4000u);
  const auto negatives = static_cast<double>(summary_.samples - summary_.positives);
  EXPECT_NEAR(negatives, 0.25 * 3600, 4 * std::sqrt(3600 * 0.25 * 0.75));
  // The same rows each time. Fewer of them are a part of these.
  const std::vector<Key> kept = block_.sparse[0].keys;
  ASSERT_TRUE(Run(text, options).ok());
  EXPECT_EQ(block_.sparse[0].keys, kept);
  options.negative_rate = 0.1;
  ASSERT_TRUE(Run(text, options).ok());
  EXPECT_THAT(kept, testing::IsSupersetOf(block_.sparse[0].keys));
  // Values of rows that are left out are not counted.
  options.min_count = 2;
  ASSERT_TRUE(Run("label,a\n1,x\n0,y\n0,y\n0,y\n1,x\n",
                  [&] {
                    options.negative_rate = 1e-9;
                    return options;
                  }())
                  .ok());
  EXPECT_EQ(summary_.vocabulary, 1u);
  EXPECT_EQ(summary_.left_out, 3u);
}

TEST_F(ConvertTest, NegativeRateIsAShareForOneLabel) {
  ConvertOptions options;
  for (const double bad : {0.0, -0.5, 1.5, std::nan("")}) {
    options.negative_rate = bad;
    EXPECT_THAT(ErrorOf("label,a\n1,x\n", options), HasSubstr("above 0 and at most 1")) << bad;
  }
  options.negative_rate = 0.5;
  options.label = {"click", "buy"};
  EXPECT_THAT(ErrorOf("click,buy,a\n1,0,x\n", options), HasSubstr("has 2 labels"));
  // A label that cannot be read is an error, not a negative.
  options.label = {"label"};
  EXPECT_THAT(ErrorOf("label,a\n1,x\nno,y\n", options), HasSubstr("line 3"));
}

TEST_F(ConvertTest, TrimmedFieldsCanBeQuoted) {
  ConvertOptions options;
  options.trim = true;
  ASSERT_TRUE(Run("label, a\n1 , \"x, y\" \n", options).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("a=x, y")));
}

TEST_F(ConvertTest, SignedKeysAreDistinctForBothSigns) {
  ConvertOptions options;
  options.keys = KeyMode::kSigned;
  ASSERT_TRUE(Run("label,a\n1,0\n0,-1\n1,1\n0,-4611686018427387903\n", options).ok());
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(0, 1, 2, 9223372036854775805));
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("label,a\n1,-9223372036854775808\n", options), HasSubstr("beyond the range"));
  EXPECT_THAT(ErrorOf("label,a\n1,x\n", options), HasSubstr("is not an integer"));
}

TEST_F(ConvertTest, NotesTheFirstTextThatIsNotUtf8) {
  ASSERT_TRUE(Run("label,a\n1,caf\xC3\xA9\n0,caf\xE9\n0,\xFF\n", {}).ok());
  EXPECT_EQ(summary_.not_utf8, scratch_.Path("input") + ": line 3");
  ASSERT_TRUE(Run("label,a\n1,caf\xC3\xA9\n", {}).ok());
  EXPECT_EQ(summary_.not_utf8, "");
}

TEST(Utf8, FollowsTheStandard) {
  for (const char* good : {"", "plain text of more than eight bytes", "\xC3\xA9", "\xE2\x82\xAC",
                           "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\xE9", "caf\xE9 au lait", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
        "\xF8\x88\x80\x80\x80", "\x80", "\xC3", "12345678\xC3("}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

TEST_F(ConvertTest, RecipeEncodesOtherDataTheSameWay) {
  ConvertOptions train;
  train.out = scratch_.Path("train");
  train.dense = {"x"};
  train.dense_transform = DenseTransform::kStandardize;
  train.min_count = 2;
  train.ignore = {"id"};
  ASSERT_TRUE(Run("id,label,x,a\n7,1,2,k\n8,0,4,k\n9,0,6,m\n", train).ok());
  const SampleBlock expected = block_;
  ConvertOptions test;
  test.recipe = train.out;
  ASSERT_TRUE(Run("a,x,label\nk,2,1\nk,4,0\nm,6,0\n", test).ok());
  EXPECT_EQ(block_.dense, expected.dense);
  EXPECT_EQ(block_.sparse[0].keys, expected.sparse[0].keys);
  EXPECT_EQ(scratch_.Read("out/recipe.json"), scratch_.Read("train/recipe.json"));
  EXPECT_EQ(scratch_.Read("out/vocabulary.txt"), scratch_.Read("train/vocabulary.txt"));
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("a,label\nk,1\n", test), HasSubstr("there is no column 'x'"));
}

TEST_F(ConvertTest, TestDataUseTheVocabularyOfTheTrainingData) {
  const std::string text = "label,a\n1,x\n0,y\n0,x\n1,z\n1,x\n";
  ConvertOptions whole;
  whole.fit_rows = 3;
  ASSERT_TRUE(Run(text, whole).ok());
  const std::vector<Key> rare = Slot(3, 0);
  EXPECT_THAT(Slot(4, 0), ElementsAre(Hash64("a=x")));
  EXPECT_THAT(Slot(1, 0), ElementsAre(Hash64("a=y")));

  ConvertOptions train;
  train.max_rows = 3;
  train.vocab_out = scratch_.Path("vocab");
  ASSERT_TRUE(Run(text, train).ok());
  EXPECT_EQ(summary_.vocabulary, 2u);
  EXPECT_THAT(scratch_.Read("vocab"), HasSubstr("a\t" + std::to_string(Hash64("a=x")) + "\t2\n"));
  ConvertOptions test;
  test.skip_rows = 3;
  test.vocab_in = scratch_.Path("vocab");
  ASSERT_TRUE(Run(text, test).ok());
  ASSERT_EQ(block_.size, 2u);
  EXPECT_EQ(Slot(0, 0), rare);
  EXPECT_THAT(Slot(1, 0), ElementsAre(Hash64("a=x")));
  test.min_count = 3;
  ASSERT_TRUE(Run(text, test).ok());
  EXPECT_EQ(Slot(1, 0), rare);
  test.key_bits = 32;
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf(text, test), HasSubstr("holds keys of kind 'hash 64'"));
  scratch_.Write("vocab", "cistern vocabulary 1 hash 32\na\t1\t2\na 1 2\n");
  EXPECT_THAT(ErrorOf(text, test), HasSubstr("vocab: line 3: is not column<TAB>key<TAB>count"));
}

TEST_F(ConvertTest, LibsvmByPosition) {
  ConvertOptions options;
  options.format = TextFormat::kLibsvm;
  options.key_bits = 32;
  options.label_threshold = 0;
  ASSERT_TRUE(Run("1 204:1 4798:1\n-1 5:1.0\t6:1  # why\n", options).ok());
  EXPECT_THAT(block_.label, ElementsAre(1, 0));
  EXPECT_EQ(summary_.shape.slot_nums[0], 2u);
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(204, 4798, 5, 6));
  options.label_threshold.reset();
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("-1 5:1\n", options),
              HasSubstr("line 1: column 'label': the label is -1, below 0: if it means a "
                        "negative sample, a threshold of 0"));
  EXPECT_THAT(ErrorOf("1 5:1 6:1\n1 5:1\n", options), HasSubstr("line 2: has 1 features"));
  EXPECT_THAT(ErrorOf("1 5:0.5\n", options), HasSubstr("line 1: feature 0 is '5:0.5'"));
  EXPECT_THAT(ErrorOf("1 5\n", options), HasSubstr("not index:value"));
  EXPECT_THAT(ErrorOf("1 0:5:1\n", options), HasSubstr("convert it as that format"));
  EXPECT_THAT(ErrorOf("1:0.5 5:1\n", options), HasSubstr("a label with a weight"));
  options.any_value = true;
  ASSERT_TRUE(Run("1 5:0.5 7:0\n", options).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(5));
  EXPECT_THAT(Slot(0, 1), ElementsAre());
  ASSERT_TRUE(Run("1 qid:3 5:1\n0 qid:4 6:1\n", options).ok());  // the query of a ranking
  EXPECT_THAT(block_.sparse[0].keys, ElementsAre(5, 6));
}

TEST_F(ConvertTest, LibffmHasASlotForEachField) {
  ConvertOptions options;
  options.format = TextFormat::kLibffm;
  // Field 10 comes after field 2, is missing in the first line, and has two features in the second.
  ASSERT_TRUE(Run("1 2:28:1 0:7:1\n0 10:5:1 0:8:1 10:6:1\n", options).ok());
  ASSERT_EQ(summary_.slots.size(), 3u);
  EXPECT_EQ(summary_.slots[2].column, "10");
  EXPECT_THAT(Slot(0, 0), ElementsAre(7));
  EXPECT_THAT(Slot(0, 1), ElementsAre(28));
  EXPECT_THAT(Slot(0, 2), ElementsAre());
  EXPECT_THAT(Slot(1, 2), ElementsAre(5, 6));
  // Other data by its recipe.
  ConvertOptions other;
  other.recipe = scratch_.Path("out");
  other.out = scratch_.Path("other");
  ASSERT_TRUE(Run("0 10:9:1\n", other).ok());
  EXPECT_THAT(Slot(0, 2), ElementsAre(9));
  other.out = scratch_.Path("none");
  other.input = {scratch_.Write("input", "0 3:9:1\n")};
  EXPECT_THAT(std::string(Run(other).message()), HasSubstr("line 1: has a field 3"));
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("1 0:7:0.5\n", options),
              HasSubstr("unless values are the weights of keys or are dropped"));
  EXPECT_THAT(ErrorOf("1 0:7\n", options), HasSubstr("holds no field:feature:value"));
}

TEST_F(ConvertTest, VowpalWabbitHasASlotForEachNamespace) {
  ConvertOptions options;
  options.format = TextFormat::kVw;
  options.key_weights = {"*"};
  ASSERT_EQ(Run("1 |user u7 |item i3:0.5 x\n0 1 'tag|user u8\n", options), absl::OkStatus());
  ASSERT_EQ(summary_.slots.size(), 2u);
  EXPECT_EQ(summary_.slots[0].column, "item");
  EXPECT_THAT(block_.label, ElementsAre(1, 0));
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("item=i3"), Hash64("item=x")));
  EXPECT_THAT(Slot(0, 1), ElementsAre(Hash64("user=u7")));
  EXPECT_THAT(Slot(1, 0), ElementsAre());
  EXPECT_THAT(block_.sparse[0].weights, ElementsAre(0.5f, 1, 1, 1));
  ConvertOptions other;
  other.recipe = scratch_.Path("out");
  other.out = scratch_.Path("other");
  ASSERT_TRUE(Run("0 |item i3:2\n", other).ok());
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("item=i3")));
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("1 u7 i3\n", options), HasSubstr("holds no |namespace feature"));
}

TEST_F(ConvertTest, LibsvmInOneSlot) {
  ConvertOptions options;
  options.format = TextFormat::kLibsvm;
  options.libsvm_slots = LibsvmSlots::kSingle;
  ASSERT_TRUE(Run("1 3:1 1:1 2:1\n0\n0 9:1\n", options).ok());
  EXPECT_EQ(block_.size, 3u);
  EXPECT_THAT(Slot(0, 0), ElementsAre(3, 1, 2));
  EXPECT_THAT(Slot(1, 0), ElementsAre());
  EXPECT_EQ(summary_.max_keys, 3u);
}

TEST_F(ConvertTest, LibsvmValuesAreWeightsOfKeys) {
  ConvertOptions options;
  options.format = TextFormat::kLibsvm;
  options.libsvm_slots = LibsvmSlots::kSingle;
  options.key_weights = {"*"};
  // An index twice; no feature; values of 0, which are no feature; a small and a negative one.
  ASSERT_EQ(Run("1 3:0.5 3:2 8:-1.5\n0\n0 7:0 9:1e-3 5:0.0\n1 2:1  # why\n", options),
            absl::OkStatus());
  EXPECT_EQ(block_.sparse[0].keys, (std::vector<Key>{3, 3, 8, 9, 2}));
  EXPECT_EQ(block_.sparse[0].weights, (std::vector<float>{0.5f, 2, -1.5f, 1e-3f, 1}));
  EXPECT_EQ(block_.sparse[0].offsets, (std::vector<uint32_t>{0, 3, 3, 4, 5}));
  std::filesystem::remove_all(scratch_.Path("out"));
  for (const char* const text :
       {"3:abc", "3:", "3", "3:nan", "3:inf", "3:1e400", ":1", "3:1 4:-"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("1 3:1\n0 ", text, "\n"), options),
                HasSubstr("not index:value"))
        << text;
  }
  EXPECT_THAT(ErrorOf("1 3:1\n0 3:1 4:abc\n", options),
              HasSubstr("line 2: feature 1 is '4:abc', not index:value"));
  EXPECT_THAT(ErrorOf("1 3:1e39\n", options),
              HasSubstr("line 1: feature 0 is '3:1e39': '1e39' is not the weight of a key"));
  options.any_value = true;
  EXPECT_THAT(ErrorOf("1 3:1\n", options), HasSubstr("either the weights of keys or dropped"));
  options.any_value = false;
  options.libsvm_slots = LibsvmSlots::kPosition;
  ASSERT_EQ(Run("1 3:0.5 4:2\n0 3:0 5:-1\n", options), absl::OkStatus());
  EXPECT_EQ(block_.sparse[0].keys, (std::vector<Key>{3, 4, 5}));
  EXPECT_EQ(block_.sparse[0].weights, (std::vector<float>{0.5f, 2, -1}));
  EXPECT_EQ(block_.sparse[0].offsets, (std::vector<uint32_t>{0, 1, 2, 2, 3}));
  options.key_weights = {"1"};
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("1 3:0.5 4:2\n", options), HasSubstr("weights of all or of none"));
}

TEST_F(ConvertTest, LibffmValuesAreWeightsOfKeys) {
  ConvertOptions options;
  options.format = TextFormat::kLibffm;
  options.key_weights = {"*"};
  ASSERT_EQ(Run("1 1:28:0.25 0:7:-2\n0 0:8:1 1:6:0 1:6:3\n", options), absl::OkStatus());
  EXPECT_EQ(block_.sparse[0].keys, (std::vector<Key>{7, 28, 8, 6}));
  EXPECT_EQ(block_.sparse[0].weights, (std::vector<float>{-2, 0.25f, 1, 3}));
  std::filesystem::remove_all(scratch_.Path("out"));
  EXPECT_THAT(ErrorOf("1 0:7:1\n0 0:7:abc\n", options),
              HasSubstr("line 2: holds '0:7:abc', not field:feature:value"));
}

// label, I1..I13, C1..C26
std::string CriteoText(int label, const std::string& integer, const std::string& category) {
  std::string line = std::to_string(label);
  for (int i = 0; i < 13; ++i) line += "\t" + (i % 2 == 0 ? integer : std::string());
  for (int i = 0; i < 26; ++i) line += "\t" + (i % 2 == 0 ? category : std::string());
  return line + "\n";
}

TEST_F(ConvertTest, CriteoNeedsNoOtherOptions) {
  ConvertOptions options;
  options.format = TextFormat::kCriteo;
  ASSERT_TRUE(Run(CriteoText(1, "7", "68fd1e64") + CriteoText(0, "-1", "05db9164"), options).ok());
  EXPECT_EQ(summary_.shape.dense_dim, 13u);
  EXPECT_EQ(summary_.shape.slot_nums[0], 26u);
  EXPECT_EQ(block_.dense[0], static_cast<float>(std::log(8.0)));
  EXPECT_EQ(block_.dense[1], 0);
  EXPECT_EQ(block_.dense[13], 0);
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("C1=68fd1e64")));
  EXPECT_THAT(Slot(0, 1), ElementsAre());
  EXPECT_THAT(Slot(1, 24), ElementsAre(Hash64("C25=05db9164")));
  options.bucket = {"I1..I13"};
  ASSERT_TRUE(Run(CriteoText(1, "1000", "a"), options).ok());
  EXPECT_EQ(summary_.shape.dense_dim, 0u);
  EXPECT_EQ(summary_.shape.slot_nums[0], 39u);
  EXPECT_THAT(Slot(0, 0), ElementsAre(Hash64("I1=b47")));
  EXPECT_THAT(Slot(0, 13), ElementsAre(Hash64("C1=a")));
}

TEST_F(ConvertTest, ManyRowsKeepTheirOrder) {
  std::string text = "label,a\n";
  for (int i = 0; i < 30000; ++i) text += "0," + std::to_string(i) + "\n";
  ConvertOptions options = Raw();
  options.samples_per_file = 7001;
  ASSERT_TRUE(Run(text, options).ok());
  EXPECT_EQ(summary_.files, 5u);
  ASSERT_EQ(block_.size, 30000u);
  for (Key i = 0; i < 30000; ++i) ASSERT_EQ(block_.sparse[0].keys[i], i);
}

}  // namespace
}  // namespace cistern::data
