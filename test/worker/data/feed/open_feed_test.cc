#include "worker/data/feed/open_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test/worker/data/scratch.h"
#include "worker/data/recipe/recipe_folder.h"

namespace cistern::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class OpenFeedTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.source = scratch_.Path("in");
    std::filesystem::create_directories(options_.source);
    options_.data.shape = {1, 1, {1}, {}, false};
    options_.data.labels = LabelRule::kProbability;
    options_.data.wide_keys = true;
  }
  // The labels of all samples, or the error.
  absl::StatusOr<std::vector<float>> Labels() {
    CISTERN_ASSIGN_OR_RETURN(const auto source, OpenFeedSource(options_));
    CISTERN_ASSIGN_OR_RETURN(const auto partition, source->Open(0, ""));
    SampleBlock block;
    block.Reset(1);
    size_t got = 1;
    while (got > 0) {
      CISTERN_ASSIGN_OR_RETURN(got, partition->Read(100, &block));
    }
    return block.label;
  }
  // A recipe that reads "click,price,item".
  void WriteRecipe(const Recipe& recipe) {
    std::filesystem::create_directories(scratch_.Path("recipe"));
    LocalFileSystem files;
    ASSERT_TRUE(data::WriteRecipe(files, recipe, scratch_.Path("recipe")).ok());
    options_.recipe = scratch_.Path("recipe");
  }
  static Recipe ClickRecipe() {
    Recipe recipe;
    recipe.layout.columns = {"click", "price", "item"};
    recipe.labels = {{"click", std::nullopt, {}}};
    recipe.dense = {{.column = "price"}};
    recipe.slots = {{.column = "item"}};
    return recipe;
  }

  Scratch scratch_;
  FeedSourceOptions options_;
};

TEST_F(OpenFeedTest, ReadsFilesOfTheModelsFormat) {
  scratch_.Write("in/a.norm", NormHeaderBytes(false, 2, 1, 1, 1) +
                                  NormSampleBytes(true, {1, 0.5f}, {{7}}) +
                                  NormSampleBytes(true, {0, 0.5f}, {{8}}));
  const auto labels = Labels();
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, ElementsAre(1, 0));
}

TEST_F(OpenFeedTest, ReadsTextByTheRecipe) {
  WriteRecipe(ClickRecipe());
  scratch_.Write("in/a.csv", "item,click,price\nx,1,2\ny,0,3\n");
  scratch_.Write("in/b.csv", "click,price,item\n1,2,x\n");
  const auto labels = Labels();
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, ElementsAre(1, 0, 1));
}

TEST_F(OpenFeedTest, RefusesRowsThatCannotBeTrained) {
  WriteRecipe(ClickRecipe());
  scratch_.Write("in/a.csv", "click,price,item\n1,2,x\n,2,x\n");
  EXPECT_THAT(Labels().status().message(), HasSubstr("a.csv: line 3"));
  scratch_.Write("in/a.csv", "price,item\n2,x\n");
  EXPECT_THAT(Labels().status().message(), HasSubstr("click"));
  options_.data.labels = LabelRule::kProbability;
  scratch_.Write("in/a.csv", "click,price,item\n1,2,x\n7,2,x\n");
  EXPECT_THAT(Labels().status().message(), HasSubstr("in/a.csv: row 1: label 0 is 7"));
}

TEST_F(OpenFeedTest, RefusesARecipeOfOtherData) {
  Recipe recipe = ClickRecipe();
  recipe.dense.clear();
  WriteRecipe(recipe);
  EXPECT_TRUE(absl::IsInvalidArgument(OpenFeedSource(options_).status()));
}

TEST_F(OpenFeedTest, RefusesSourcesThatItDoesNotKnow) {
  for (const char* source : {"ftp://host/clicks", "mqtt://broker/topic", "/no/such/folder"}) {
    options_.source = source;
    EXPECT_TRUE(absl::IsInvalidArgument(OpenFeedSource(options_).status())) << source;
  }
}

TEST_F(OpenFeedTest, CountsFilesThatItLeavesOut) {
  WriteRecipe(ClickRecipe());
  BadData bad;
  options_.data.bad_data = &bad;
  scratch_.Write("in/a.csv", "click,price,item\n1,2,x\nmaybe,2,x\n0,1,x\n");
  scratch_.Write("in/b.csv", "click,price,item\n0,2,x\n");
  EXPECT_THAT(*Labels(), ElementsAre(1, 0));
  EXPECT_EQ(bad.counts().at("corrupt"), 1u);
}

}  // namespace
}  // namespace cistern::data
