#include "app/predict/evaluate.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "test/app/train/run_fixture.h"

namespace cistern::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void Quiet(const std::string&) {}

class Evaluations : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    run_ = RunOf(RunOptions("run", {"solver.num_epochs=2"}));
    ASSERT_TRUE(run_.ok()) << run_.status();
    options_.model.config = folder_ + "/run";
    options_.data = {folder_ + "/test.norm"};
  }

  absl::StatusOr<TrainRunResult> run_;
  EvaluateOptions options_;
};

TEST_F(Evaluations, AgreeWithTheRun) {
  const absl::StatusOr<EvalSummary> score = EvaluateModel(options_, Quiet);
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_EQ(score->samples, 1000u);
  EXPECT_EQ(score->auc, run_->summary.auc);
  EXPECT_EQ(score->logloss, *run_->summary.logloss);
}

TEST_F(Evaluations, PredictEachSampleInOrder) {
  std::vector<float> labels, predictions;
  const absl::StatusOr<EvalSummary> done = PredictData(
      options_,
      [&](absl::Span<const float> label, absl::Span<const float> prediction) {
        labels.insert(labels.end(), label.begin(), label.end());
        predictions.insert(predictions.end(), prediction.begin(), prediction.end());
        return absl::OkStatus();
      },
      Quiet);
  ASSERT_TRUE(done.ok()) << done.status();
  ASSERT_EQ(predictions.size(), 1000u);
  double loss = 0;  // by its definition
  for (size_t i = 0; i < labels.size(); ++i) {
    loss -= std::log(labels[i] == 1 ? predictions[i] : 1.0 - predictions[i]) / 1000;
  }
  EXPECT_NEAR(loss, *run_->summary.logloss, 1e-5);
  const std::string output = folder_ + "/predictions.tsv";
  ASSERT_TRUE(PredictToFile(options_, output, Quiet).ok());
  std::ifstream lines(output);
  float label = 0, prediction = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    ASSERT_TRUE(lines >> label >> prediction) << i;
    ASSERT_EQ(label, labels[i]);
    ASSERT_EQ(prediction, predictions[i]);  // nine digits are all of a float
  }
}

TEST_F(Evaluations, NeedATrainedModelWithTheSameGraph) {
  EvaluateOptions none = options_;
  none.model.config = folder_ + "/model.json";
  EXPECT_THAT(OptionsOf(EvaluateModel(none, Quiet).status()), ElementsAre("model", "servers"));
  EvaluateOptions other = none;
  other.model_dir = folder_ + "/run";
  other.model.set = {"layers.3.fc_param.num_output=8"};
  EXPECT_THAT(std::string(EvaluateModel(other, Quiet).status().message()),
              HasSubstr("its graph differs from the trained one"));
}

}  // namespace
}  // namespace cistern::app
