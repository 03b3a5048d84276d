// Predictions in a file, with each kind of model. Text with a recipe:
// test/integration/recipe_test.py.
#include "app/predict/predict.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "app/export/export_serving.h"
#include "test/app/train/run_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;

void NoNote(const std::string&) {}

class PredictedFiles : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    const auto run = RunOf(RunOptions("run", {"solver.num_epochs=1"}));
    ASSERT_TRUE(run.ok()) << run.status();
    options_.model.config = folder_ + "/run";
    options_.data = {folder_ + "/test.norm"};
  }
  void Export() const {
    ServingExport serving;
    serving.source.model.config = folder_ + "/run";
    serving.version.out = folder_ + "/serving";
    ASSERT_TRUE(ExportServing(serving, {}).ok());
  }
  // The lines of the file that PredictFiles writes.
  std::string Lines(const std::string& name) {
    options_.output = folder_ + "/" + name;
    result_ = PredictFiles(options_, NoNote);
    EXPECT_TRUE(result_.ok()) << result_.status();
    std::ifstream file(options_.output);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  PredictOptions options_;
  absl::StatusOr<PredictResult> result_;
};

TEST_F(PredictedFiles, AServingFolderGivesTheBitsOfItsRun) {
  const std::string of_run = Lines("run.tsv");
  EXPECT_EQ(result_->summary.samples, 1000);
  EXPECT_EQ(result_->version, "");
  Export();
  options_.model.config = folder_ + "/serving";
  EXPECT_EQ(Lines("serving.tsv"), of_run);
  EXPECT_NE(result_->version, "");
}

TEST_F(PredictedFiles, AServingFolderIsAWholeModel) {
  Export();
  options_.model.config = folder_ + "/serving";
  options_.model.set = {"solver.seed=1"};
  EXPECT_THAT(OptionsOf(PredictFiles(options_, NoNote).status()),
              ElementsAre("model", "servers", "set"));
}

TEST_F(PredictedFiles, AnOutputReplacesNoInput) {
  for (const std::string& read : {folder_ + "/test.norm", folder_ + "/run/model.json"}) {
    options_.output = read;
    EXPECT_THAT(OptionsOf(PredictFiles(options_, NoNote).status()), ElementsAre("output")) << read;
  }
}

TEST_F(PredictedFiles, TextNeedsARecipe) {
  options_.data.clear();
  options_.text.files = {folder_ + "/rows.csv"};
  EXPECT_THAT(OptionsOf(PredictFiles(options_, NoNote).status()), ElementsAre("input", "recipe"));
  Export();
  options_.model.config = folder_ + "/serving";
  EXPECT_THAT(OptionsOf(PredictFiles(options_, NoNote).status()),
              ElementsAre("input", "export.serving.recipe"));
}

}  // namespace
}  // namespace cistern::app
