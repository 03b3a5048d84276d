#include "app/data/more_data.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "common/io/file_system.h"
#include "test/app/data/text_fixture.h"
#include "worker/data/prepare/convert.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MoreDataTest : public TextFixture {
 protected:
  void SetUp() override {
    InitOptions init;
    init.table = Write("a", 600);
    init.how.model = "lr";
    init.out = In("run");
    ASSERT_TRUE(InitModel(init, {}).ok());
    options_.out = In("run");
    options_.eval_source = In("run/data/test/file_list.txt");
  }
  std::vector<std::string> OptionsOfError() const {
    const absl::Status status = ConvertMore(options_, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return OptionsOf(status);
  }
  MoreOptions options_;
};

TEST_F(MoreDataTest, LeavesDataSetsAsTheyAre) {
  options_.files = {"b/file_list.txt", Write("day2", 400)};
  const absl::StatusOr<MoreData> more = ConvertMore(options_, {});
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(more->source, absl::StrCat("b/file_list.txt,", In("run/more/day2/file_list.txt")));
  EXPECT_EQ(more->max_keys, 1u);  // one slot: user
}

TEST_F(MoreDataTest, NamesTheColumnsOfAFileWithoutHeader) {
  options_.files = {WriteText("day2.csv", "0,u1,10.5\n1,u2,11.5\n")};
  const absl::Status unnamed = ConvertMore(options_, {}).status();
  EXPECT_THAT(OptionsOf(unnamed), ElementsAre("columns=click,user,price")) << unnamed;
  std::string rows;
  for (int i = 0; i < 400; ++i)
    absl::StrAppend(&rows, i % 19, ".5;u", i % 19, ";", i % 4 == 0, "\n");
  options_.files = {WriteText("day2.csv", rows)};
  options_.columns = {"price", "user", "click"};
  options_.delimiter = ';';
  const absl::StatusOr<MoreData> more = ConvertMore(options_, {});
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(more->source, In("run/more/day2/file_list.txt"));
}

TEST_F(MoreDataTest, NamesTheColumnsOfAFileWithoutHeaderAndWithMore) {
  options_.files = {WriteText("day2.csv", "0,u1,10.5,b1\n1,u2,11.5,b2\n")};
  const absl::Status more = ConvertMore(options_, {}).status();
  EXPECT_THAT(OptionsOf(more), ElementsAre("columns=NAME,...")) << more;
  EXPECT_THAT(more.message(), HasSubstr("had 3, click,user,price"));
}

TEST_F(MoreDataTest, LeavesAddedColumnsEmpty) {
  std::string without, empty;
  for (int i = 0; i < 400; ++i) {
    absl::StrAppend(&without, i % 4 == 0, ",", i % 19, ".5\n");
    absl::StrAppend(&empty, i % 4 == 0, ",,", i % 19, ".5\n");
  }
  options_.files = {WriteText("without.csv", absl::StrCat("click,price\n", without))};
  EXPECT_THAT(OptionsOfError(), ElementsAre("add_column=user"));
  options_.add_columns = {"user"};
  const absl::StatusOr<MoreData> added = ConvertMore(options_, {});
  ASSERT_TRUE(added.ok()) << added.status();
  options_.files = {WriteText("empty.csv", absl::StrCat("click,user,price\n", empty))};
  ASSERT_TRUE(ConvertMore(options_, {}).ok());
  const auto bytes = [&](const char* name) {
    LocalFileSystem files;
    return *ReadWhole(files, absl::StrCat(In("run/more/"), name, "/part-00000.norm"), 1 << 20);
  };
  EXPECT_EQ(bytes("without"), bytes("empty"));
  options_.add_columns = {"brand"};  // which the model has no inputs for
  EXPECT_THAT(OptionsOfError(), ElementsAre("more", "add_column"));
}

TEST_F(MoreDataTest, WarnsOfValuesAndNumbersUnlikeThoseOfBefore) {
  data::ConvertOptions evaluation;
  evaluation.input = {In("a.csv")};
  evaluation.recipe = In("run");
  evaluation.out = In("run/data/test");
  ASSERT_TRUE(Convert(evaluation).ok());
  options_.files = {Write("day2", 400)};
  const absl::StatusOr<MoreData> same = ConvertMore(options_, {});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_THAT(same->warnings, IsEmpty());
  for (const double times : {100.0, 0.001}) {
    std::string prices = "click,user,price\n";
    for (int i = 0; i < 400; ++i) {
      absl::StrAppend(&prices, i % 4 == 0 ? 1 : 0, ",u", i * 7 % 19, ",", i * 37 % 101 * times,
                      "\n");
    }
    options_.files = {WriteText("other_unit.csv", prices)};
    const absl::StatusOr<MoreData> moved = ConvertMore(options_, {});
    ASSERT_TRUE(moved.ok()) << moved.status();
    EXPECT_THAT(moved->warnings, ElementsAre(HasSubstr("column 'price': "))) << times;
    EXPECT_THAT(moved->warnings, ElementsAre(HasSubstr("are they in the same unit?")));
  }
  options_.files = {Write("others", 400, "v")};
  const absl::StatusOr<MoreData> others = ConvertMore(options_, {});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT(others->warnings, ElementsAre(HasSubstr("slot 'user': 100 % of its ")));
}

// Half of 400 labels are positive where a quarter were: 1.1 in log-odds, of which 200 positives
// know theirs to 1 / sqrt(200), which is 0.07.
TEST_F(MoreDataTest, KnowsTheShareOfPositivesOfTheNewDays) {
  options_.share = 0.25;
  options_.files = {Write("day2", 400, "u", "", 2)};
  absl::StatusOr<MoreData> more = ConvertMore(options_, {});
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_NEAR(more->share.value(), 0.5, 1e-9);
  EXPECT_TRUE(more->exact_share);
  for (const double share : {0.5, 0.48}) {  // the same command again; chance: 0.08 in log-odds
    options_.share = share;
    more = ConvertMore(options_, {});
    ASSERT_TRUE(more.ok()) << more.status();
    EXPECT_EQ(more->share.value(), share);
  }
  options_.share = 0.25;
  // As much of the negative rows is kept as the model knows: the share is that of all rows.
  options_.model_negatives = options_.table_negatives = 0.5;
  more = ConvertMore(options_, {});
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_NEAR(more->share.value(), 0.5, 1e-9);
  EXPECT_EQ(more->eval_negatives, 1);  // of held-out rows none are left out
  options_.table_negatives = 1;        // the file lacks half of them, and as many held-out ones
  more = ConvertMore(options_, {});
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_NEAR(more->share.value(), 1.0 / 3, 1e-9);
  EXPECT_TRUE(more->exact_share);
  EXPECT_EQ(more->eval_negatives, 0.5);
  options_.model_negatives = 1;
  options_.valid = Write("valid", 300);
  more = ConvertMore(options_, {});
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_NEAR(more->share.value(), 0.5, 1e-9);
  EXPECT_FALSE(more->exact_share);
  options_.files = {"b/file_list.txt"};
  more = ConvertMore(options_, {});
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(more->share, std::nullopt);
}

TEST_F(MoreDataTest, RefusesWhatWouldRuinTheModel) {
  options_.files = {Write("day2", 400)};
  options_.model_negatives = 0.5;
  EXPECT_THAT(OptionsOfError(), ElementsAre("more", "negative_rate=0.5"));
  options_.model_negatives = 1;
  options_.table_negatives = 0.5;
  EXPECT_THAT(OptionsOfError(), ElementsAre("negative_rate", "more"));
  options_.table_negatives = 0;
  options_.workers = 2;
  EXPECT_THAT(OptionsOfError(), ElementsAre("more", "data.convert.recipe"));
  options_.workers = 1;
  options_.files = {In("missing.csv")};
  EXPECT_THAT(OptionsOfError(), ElementsAre("more"));
  std::string rows;
  for (int i = 0; i < 200; ++i) rows += "0,u1,10.5\n";
  options_.files = {WriteText("zero.csv", "click,user,price\n" + rows)};
  EXPECT_THAT(OptionsOfError(), ElementsAre("more", "label"));
  options_.files = {Write("day2", 400)};
  options_.valid = WriteText("valid.csv", "click,user,price\n0,u1,10.5\n");
  EXPECT_THAT(OptionsOfError(), ElementsAre("more", "valid"));
  std::filesystem::remove(In("run/recipe.json"));
  EXPECT_THAT(OptionsOfError(), ElementsAre("more", "data.convert.recipe"));
}

// Each label has its classes, and a class whose weights are 0 is none.
TEST_F(MoreDataTest, RefusesADayWithoutOneOfTheClasses) {
  const auto rows = [](int count, bool buys, double weight_of_click) {
    std::string text = "click,buy,user,price,w\n";
    for (int i = 0; i < count; ++i) {
      const bool click = i % 4 == 0;
      absl::StrAppend(&text, click ? 1 : 0, ",", buys && i % 8 == 0 ? 1 : 0, ",u", i * 7 % 19, ",",
                      i * 37 % 101, ".", i % 90 + 10, ",", click ? weight_of_click : i % 3 + 0.5,
                      "\n");
    }
    return text;
  };
  const auto make_run = [&](const std::string& name, const std::string& label,
                            const std::string& weight) {
    InitOptions init;
    init.table = WriteText("first.csv", rows(600, true, 2.5));
    init.how.wishes.label = label;
    init.how.wishes.weight = weight;
    init.out = options_.out = In(name);
    options_.eval_source = In(name + "/data/test/file_list.txt");
    const absl::Status made = InitModel(init, {}).status();
    ASSERT_TRUE(made.ok()) << made;
  };
  const std::string without_buys = WriteText("no_buys.csv", rows(400, false, 2.5));
  const std::string without_weight = WriteText("no_weight.csv", rows(400, true, 0));
  make_run("two", "click,buy", "");
  options_.files = {without_buys};
  EXPECT_THAT(OptionsOfError(), ElementsAre("more", "label"));
  options_.files = {without_weight};
  EXPECT_EQ(ConvertMore(options_, {}).status(), absl::OkStatus());
  make_run("weighted", "click", "w");
  EXPECT_THAT(OptionsOfError(), ElementsAre("more", "label"));
  options_.files = {without_buys};
  EXPECT_EQ(ConvertMore(options_, {}).status(), absl::OkStatus());
}

}  // namespace
}  // namespace cistern::app
