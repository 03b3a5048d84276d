#include "app/predict/evaluate.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "app/predict/predict.h"
#include "app/train/train_data.h"
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
  EXPECT_EQ(score->auc, run_->summary.score.auc);
  EXPECT_EQ(score->logloss, *run_->summary.score.logloss);
}

TEST_F(Evaluations, PredictEachSampleInOrder) {
  std::vector<float> labels, predictions;
  const std::string output = folder_ + "/predictions.tsv";
  const absl::StatusOr<EvalSummary> done = PredictDataSets(
      options_, output,
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
  EXPECT_NEAR(loss, *run_->summary.score.logloss, 1e-5);
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

// A run of a table of two users, of whom one clicks.
class TableEvaluations : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    WriteRows("train.csv", 2000);
    TrainRunOptions training = RunOptions("of-table", {});
    training.model.config = folder_ + "/train.csv";
    TableCalls preparing;
    preparing.note = Quiet;
    ASSERT_EQ(ApplyTrainData({}, &training, preparing), absl::OkStatus());
    const auto run = RunOf(training);
    ASSERT_TRUE(run.ok()) << run.status();
    options_.model.config = folder_ + "/of-table";
  }
  // Rows label,user: user a clicks with .8, user b with .2.
  void WriteRows(const std::string& name, int rows, bool with_labels = true) const {
    std::ofstream file(folder_ + "/" + name);
    file << (with_labels ? "label,user\n" : "user\n");
    for (int row = 0; row < rows; ++row) {
      const bool is_a = row % 2 == 0;
      const bool clicks = row % 10 < 2 ? !is_a : is_a;
      if (with_labels) file << clicks << ",";
      file << (is_a ? "a" : "b") << "\n";
    }
  }
  EvaluateOptions options_;
};

TEST_F(TableEvaluations, TakeRowsOfText) {
  WriteRows("new.csv", 100);
  options_.data = {folder_ + "/new.csv"};
  const absl::StatusOr<EvalSummary> score = EvaluateModel(options_, Quiet);
  ASSERT_TRUE(score.ok()) << score.status();
  EXPECT_EQ(score->samples, 100u);
  EXPECT_EQ(score->positives, 50u);
  // Of 50 x 50 pairs: right where a clicks and b does not (40 x 40), half where users are equal.
  EXPECT_NEAR(*score->auc, (40 * 40 + 0.5 * (40 * 10 + 10 * 40)) / 2500.0, 1e-9);
}

TEST_F(TableEvaluations, PredictRowsWithoutLabelsToo) {
  WriteRows("new.csv", 10, /*with_labels=*/false);
  PredictOptions predict;
  static_cast<EvaluateOptions&>(predict) = options_;
  predict.data = {folder_ + "/new.csv"};
  predict.text.keep = {"user"};
  predict.output = folder_ + "/predictions.csv";
  std::vector<float> labels, predictions;
  const auto visit = [&](absl::Span<const float> some, absl::Span<const float> of_them) {
    labels.insert(labels.end(), some.begin(), some.end());
    predictions.insert(predictions.end(), of_them.begin(), of_them.end());
    return absl::OkStatus();
  };
  const absl::StatusOr<PredictResult> done = PredictFiles(predict, Quiet, visit);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_FALSE(done->labeled);
  ASSERT_EQ(predictions.size(), 10u);
  EXPECT_THAT(labels, testing::Each(testing::Lt(-0.5f)));
  EXPECT_GT(predictions[0], 0.6f);
  EXPECT_LT(predictions[1], 0.4f);
  EXPECT_EQ(predictions[0], predictions[8]);
  std::ifstream table(predict.output);
  std::string line;
  std::getline(table, line);
  EXPECT_EQ(line, "user,prediction");
  for (size_t i = 0; i < predictions.size(); ++i) {
    ASSERT_TRUE(std::getline(table, line)) << i;
    EXPECT_EQ(line.substr(0, 2), i % 2 == 0 ? "a," : "b,");
    EXPECT_EQ(std::stof(line.substr(2)), predictions[i]);  // nine digits are all of a float
  }

  predict.data.push_back(folder_ + "/of-table/data/test/file_list.txt");
  EXPECT_THAT(OptionsOf(PredictFiles(predict, Quiet).status()), ElementsAre("data"));
  predict.data = {predict.data[1]};
  EXPECT_THAT(OptionsOf(PredictFiles(predict, Quiet).status()), ElementsAre("keep"));
  predict.text.keep.clear();
  predict.model.config = folder_ + "/new.csv";
  EXPECT_EQ(KindOf(PredictFiles(predict, Quiet).status()), ErrorKind::kTable);
  EXPECT_EQ(KindOf(EvaluateModel(predict, Quiet).status()), ErrorKind::kTable);
}

TEST_F(TableEvaluations, NeedLabels) {
  WriteRows("unlabeled.csv", 10, /*with_labels=*/false);
  WriteRows("empty.csv", 0);
  for (const char* name : {"unlabeled.csv", "empty.csv"}) {
    options_.data = {folder_ + "/" + name};
    const absl::Status status = EvaluateModel(options_, Quiet).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("nothing to evaluate"));
    EXPECT_THAT(OptionsOf(status), ElementsAre("data"));
  }
}

}  // namespace
}  // namespace cistern::app
