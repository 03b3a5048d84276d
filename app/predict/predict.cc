#include "app/predict/predict.h"

#include "app/predict/predict_serving.h"
#include "app/predict/predict_text.h"

namespace cistern::app {

absl::StatusOr<PredictResult> PredictFiles(const PredictOptions& options, const OnNote& note) {
  if (!options.text.files.empty()) return PredictRows(options, nullptr, note);
  if (IsServingFolder(options.model.config)) return PredictServing(options);
  PredictResult result;
  CISTERN_ASSIGN_OR_RETURN(result.summary, PredictToFile(options, options.output, note));
  return result;
}

}  // namespace cistern::app
