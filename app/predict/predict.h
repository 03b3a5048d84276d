// Predictions, written to a file: of data sets or rows of text, with a run, a saved model, a fleet
// or a serving folder.
#pragma once

#include <cstdint>
#include <string>

#include "app/job_calls.h"
#include "app/predict/evaluate.h"
#include "serve/predictor/predictor.h"
#include "worker/data/recipe/text_samples.h"

namespace cistern::app {

struct PredictOptions : EvaluateOptions {  // model.config may be a serving folder, too
  std::string output;                      // the file, which appears when all lines are written;
                                           // empty: none
  uint64_t batch = 4096;                   // samples of a request, with a serving folder
  data::TextInput text;  // rows of text; no files: `data` is predicted, which may be tables
};

struct PredictResult {
  EvalSummary summary;
  bool has_rows = true;  // false: text without a row, of which the output has the header line only
  bool labeled = true;   // false: text without labels, so that only samples, unseen keys and time
                         // of the summary mean something
  std::string version;   // of a serving folder, its folder; else empty
  uint64_t commit = 0;   // of that version
};

// Writes label<TAB>prediction of each sample of data, or a table of the kept columns and the
// prediction of each row of text (prediction_table.h), in input order. visit (may be null) is
// called for each batch of samples, with their labels (below kNoLabelBelow: unknown).
//
// kInvalidArgument: data that was not converted as that of the training was (with the first
// difference); the folder holds no recipe, which says how text is encoded; the output would replace
// an input. Of kind kTable: a table in place of the model. Other errors: those of model, data, file
// and `visit`.
absl::StatusOr<PredictResult> PredictFiles(const PredictOptions& options, const OnNote& note,
                                           const OnPredictions& visit = nullptr);

// The same with a model of the serving folder options.model.config that is open, in requests of
// predictor.max_samples() samples, each of which one version predicts. The result names the last.
absl::StatusOr<PredictResult> PredictFilesWith(serve::Predictor& predictor,
                                               const PredictOptions& options, const OnNote& note,
                                               const OnPredictions& visit = nullptr);

}  // namespace cistern::app
