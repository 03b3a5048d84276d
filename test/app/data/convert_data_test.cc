#include "app/data/convert_data.h"

#include <gmock/gmock.h>

#include <functional>

#include "common/io/file_system.h"
#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConvertsData : public TextFixture {
 protected:
  ConvertDataOptions Options(const std::string& input, const std::string& out) const {
    ConvertDataOptions options;
    options.input = {input};
    options.out = In(out);
    options.label = {"click"};
    options.dense = {"price"};
    return options;
  }
};

TEST_F(ConvertsData, InPartsThatShareNoRow) {
  ConvertDataOptions options = Options(Write("a", 1000), "train");
  options.part = DataPart::kTrain;
  const absl::StatusOr<data::ConvertSummary> train = ConvertData(options, {});
  ASSERT_TRUE(train.ok()) << train.status();
  options.part = DataPart::kTest;
  options.out = In("test");
  const absl::StatusOr<data::ConvertSummary> test = ConvertData(options, {});
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(train->samples + test->samples, 1000u);
  EXPECT_EQ(train->positives + test->positives, 250u);
  EXPECT_NEAR(static_cast<double>(test->samples), 100, 4 * 9.5);  // sqrt(1000 * 0.1 * 0.9)
  const nlohmann::ordered_json json = JsonOf(*train);
  EXPECT_EQ(json["samples"], train->samples);
  EXPECT_EQ(json["slot_num"], 1);
  EXPECT_EQ(json["dense_dim"], 1);
  EXPECT_EQ(json["slots"][0]["column"], "user");
  EXPECT_EQ(json["slots"][0]["distinct"], 19);
}

TEST_F(ConvertsData, AndNotesWhatIsOdd) {
  std::string rows = "click,user,price\n";
  for (int i = 0; i < 150; ++i) absl::StrAppend(&rows, "0,caf\xe9", i % 9, ",1.5\n");
  std::vector<std::string> notes;
  JobCalls calls;
  calls.note = [&](const std::string& line) { notes.push_back(line); };
  ConvertDataOptions options = Options(WriteText("zero.csv", rows), "zero");
  options.weight = "price";
  options.dense = {};
  const absl::StatusOr<data::ConvertSummary> zero = ConvertData(options, calls);
  ASSERT_TRUE(zero.ok()) << zero.status();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("holds text that is not UTF-8"),
                                 HasSubstr("all 150 labels are 0")));
  EXPECT_EQ(LabelDimOf(*zero), 1u);  // the weight is none
  EXPECT_EQ(JsonOf(*zero)["sample_weights"], true);
}

TEST_F(ConvertsData, WithNumbersAsPeopleWriteThem) {
  const auto table = [&](const std::string& name, const std::function<std::string(int)>& price) {
    std::string rows = "click,user,price\n";
    for (int i = 0; i < 150; ++i) absl::StrAppend(&rows, i % 3 == 0, ",u,", price(7 * i), "\n");
    return WriteText(name, rows);
  };
  LocalFileSystem files;
  const auto bytes = [&](const std::string& input, const JobCalls& calls) {
    const absl::Status done = ConvertData(Options(input, input + ".out"), calls).status();
    EXPECT_TRUE(done.ok()) << done;
    return ReadWhole(files, input + ".out/part-00000.norm", 1 << 20).value_or("");
  };
  const std::string plain = bytes(table("plain", [](int x) { return absl::StrCat(x, ".5"); }), {});
  std::vector<std::string> notes;
  JobCalls calls;
  calls.note = [&](const std::string& line) { notes.push_back(line); };
  EXPECT_EQ(bytes(table("dollars", [](int x) { return absl::StrCat("$", x, ".5"); }), calls),
            plain);
  EXPECT_EQ(bytes(table("commas", [](int x) { return absl::StrCat("\"", x, ",5\""); }), calls),
            plain);
  EXPECT_THAT(notes, ElementsAre("note: the numbers of 'price': unit $",
                                 "note: the numbers of 'price': written with a decimal comma"));
}

TEST_F(ConvertsData, ByARecipeThatStandsAlone) {
  ASSERT_TRUE(ConvertData(Options(Write("a", 300), "a"), {}).ok());
  ConvertDataOptions options;
  options.input = {Write("b", 200, "w")};
  options.out = In("b");
  options.recipe = In("a");
  const absl::StatusOr<data::ConvertSummary> by_recipe = ConvertData(options, {});
  ASSERT_TRUE(by_recipe.ok()) << by_recipe.status();
  EXPECT_EQ(by_recipe->shape.dense_dim, 1u);
  EXPECT_EQ(OptionBesideRecipe(options), "");
  options.key_bits = 32;
  EXPECT_EQ(OptionBesideRecipe(options), "key_bits");
  options.label_threshold = 0;
  EXPECT_EQ(OptionBesideRecipe(options), "label_threshold");
  EXPECT_THAT(OptionsOf(ConvertData(options, {}).status()),
              ElementsAre("label_threshold", "recipe"));
  options.recipe = "";
  EXPECT_EQ(OptionBesideRecipe(options), "");
}

TEST_F(ConvertsData, OfFilesThatExist) {
  const absl::Status missing = ConvertData(Options(In("missing.csv"), "a"), {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  const std::atomic<bool> stop{true};
  JobCalls calls;
  calls.stop = &stop;
  EXPECT_TRUE(absl::IsCancelled(ConvertData(Options(Write("a", 20000), "a"), calls).status()));
}

TEST(ConvertData, KnowsThatAFewRowsHaveAllWeight) {
  data::ConvertSummary summary;
  summary.labels.resize(1);
  summary.samples = 1000;
  summary.positives = 100;
  // Of one weight, `heavy` samples have another one: (1000 - heavy + heavy * weight)^2 by
  // 1000 - heavy + heavy * weight^2.
  const auto fault = [&](double heavy, double weight, double scale) {
    const double rest = 1000 - heavy;
    summary.weight = scale * (rest + heavy * weight);
    summary.positive_weight = summary.weight / 2;
    summary.weight_squares = scale * scale * (rest + heavy * weight * weight);
    return WeightFaultOf(summary);
  };
  for (const double scale : {1e-9, 1.0, 1e9}) {
    EXPECT_EQ(fault(0, 0, scale), "");
    EXPECT_EQ(fault(30, 1e9, scale), "");
    EXPECT_THAT(fault(1, 1e9, scale), HasSubstr("make 1000 rows count as 1:"));
    EXPECT_THAT(fault(4, 1e6, scale), HasSubstr("count as 4:"));
  }
  EXPECT_EQ(fault(1000, 0, 1), "");  // all are 0
}

TEST(ConvertData, KnowsAClassWithoutWeight) {
  data::ConvertSummary summary;
  summary.labels.resize(1);
  summary.samples = 10;
  summary.positives = 4;
  const auto weightless = [&](double weight, double positive_weight) {
    summary.weight = weight;
    summary.positive_weight = positive_weight;
    return WeightFaultOf(summary);
  };
  EXPECT_EQ(weightless(10, 4), "");
  EXPECT_EQ(weightless(4, 4), "the weights of all negative labels are 0");
  EXPECT_EQ(weightless(6, 0), "the weights of all positive labels are 0");
  EXPECT_EQ(weightless(0, 0), "");  // neither class has any
  summary.positives = 0;
  EXPECT_EQ(weightless(6, 0), "");  // there is one class
}

}  // namespace
}  // namespace cistern::app
