// Trains a model, saves it as a run, and predicts data with it: what `cistern train` and
// `cistern predict` do, from C++.
//
//   train_and_predict MODEL.json RUN DATA OUTPUT
#include <iostream>
#include <string>
#include <utility>

#include "app/predict/evaluate.h"
#include "app/train/train_run.h"

namespace app = cistern::app;

namespace {

void Print(const std::string& line) {
  std::cerr << line << "\n";
}

absl::Status TrainAndPredict(const std::string& model, const std::string& run,
                             const std::string& data, const std::string& output) {
  app::TrainRunOptions training;
  training.model.config = model;
  training.out = run;  // becomes the folder of the run: model, metrics, report
  app::TrainRunCalls calls;
  calls.note = Print;
  calls.progress = [](const cistern::Progress& progress) {
    Print(absl::StrCat(progress.event, ": iteration ", progress.iter));
    return true;  // false ends the training, with its state saved
  };
  CISTERN_ASSIGN_OR_RETURN(cistern::ModelConfig config, app::ReadModelConfig(training.model));
  CISTERN_ASSIGN_OR_RETURN(const app::TrainRunResult trained,
                           app::TrainRun(std::move(config), training, calls));
  std::cout << "trained " << trained.summary.samples << " samples, " << trained.summary.rows
            << " rows; report: " << trained.page << "\n";

  app::EvaluateOptions prediction;
  prediction.model.config = run;  // a run is a whole model
  prediction.data = {data};
  CISTERN_ASSIGN_OR_RETURN(const cistern::EvalSummary predicted,
                           app::PredictToFile(prediction, output, Print));
  std::cout << "predicted " << predicted.samples << " samples, log loss " << predicted.logloss
            << "\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return Print("usage: train_and_predict MODEL.json RUN DATA OUTPUT"), 2;
  const absl::Status status = TrainAndPredict(argv[1], argv[2], argv[3], argv[4]);
  if (status.ok()) return 0;
  // An error has a code and a kind to branch on, options that decide the matter, and a fix.
  Print(std::string(status.message()));
  if (!cistern::FixOf(status).empty()) Print("fix: " + cistern::FixOf(status));
  return 1;
}
