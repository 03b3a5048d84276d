#include "app/data/more_data.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "test/app/data/text_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace cistern::app
