// Trains a model, saves it as a run, and predicts data with it: what `cistern train` and
// `cistern predict` do, from C++. TABLE and DATA are text (*.csv, *.tsv ...), or a model file and
// converted data.
//
//   train_and_predict TABLE|MODEL.json RUN DATA OUTPUT
#include <iostream>

#include "app/data/table_file.h"
#include "app/predict/predict.h"
#include "app/train/train_data.h"

namespace app = cistern::app;

namespace {

void Print(const std::string& line) {
  std::cerr << line << "\n";
}

absl::Status TrainAndPredict(const std::string& model, const std::string& run,
                             const std::string& data, const std::string& output) {
  app::TrainRunOptions training;
  training.model.config = model;
  training.out = run;         // becomes the folder of the run: model, metrics, report
  app::TableCalls preparing;  // of a table, which becomes a model file and data below `run`
  preparing.note = Print;
  CISTERN_RETURN_IF_ERROR(app::ApplyTrainData({}, &training, preparing));
  app::TrainRunCalls calls;
  calls.progress = [](const cistern::Progress& progress) {
    Print(absl::StrCat(cistern::report::EventName(progress.event), ": iteration ", progress.iter));
    return true;  // false ends the training, with its state saved
  };
  CISTERN_ASSIGN_OR_RETURN(cistern::model::ModelConfig config,
                           app::ReadModelConfig(training.model));
  CISTERN_ASSIGN_OR_RETURN(const app::TrainRunResult trained,
                           app::TrainRun(std::move(config), training, calls));
  std::cout << "trained " << trained.summary.samples << " samples; report: " << trained.page
            << "\n";

  app::PredictOptions prediction;
  prediction.model.config = run;  // a run is a whole model
  (app::IsTable(data) ? prediction.text.files : prediction.data) = {data};
  prediction.output = output;
  CISTERN_ASSIGN_OR_RETURN(const app::PredictResult predicted,
                           app::PredictFiles(prediction, Print));
  std::cout << "predicted " << predicted.summary.samples << " samples\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return Print("usage: train_and_predict TABLE|MODEL.json RUN DATA OUTPUT"), 2;
  const absl::Status status = TrainAndPredict(argv[1], argv[2], argv[3], argv[4]);
  if (status.ok()) return 0;
  // An error has a code and a kind to branch on, options that decide the matter, and a fix.
  Print(std::string(status.message()));
  if (!cistern::FixOf(status).empty()) Print("fix: " + cistern::FixOf(status));
  return 1;
}
