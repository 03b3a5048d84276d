// What the jobs that write a version for serving share: its options, and the model file in it.
#pragma once

#include <cstdint>
#include <string>

#include "app/model/model_source.h"
#include "common/base/status.h"
#include "worker/export/serving/serving_model.h"

namespace cistern::app {

struct VersionOptions {
  std::string out = {};  // the serving folder
  RowPrecision precision = RowPrecision::kFloat32;
  uint64_t keep = 2;        // versions, at least one
  std::string recipe = {};  // that encodes rows of text; empty: that of the run
  std::string name = {};    // of the model (ServingOptions::name)
};

ServingOptions ServingOptionsOf(const VersionOptions& options);

// Something in `folder` that does not belong into a serving folder without HEAD; empty: there is
// nothing, or the folder cannot be read. An export that is running, or was killed, leaves its
// locks, an unfinished HEAD and the folder of a version.
std::string OtherThingIn(const std::string& folder);

// kInvalidArgument, with a fix: options.out holds something other than versions of a model, with
// which a new version would be mixed; or options.name is invalid.
absl::Status CheckServingPlace(const VersionOptions& options);

// Reads the text of the model file and the recipe of its data: that of options.recipe, else the one
// in `trained`, the folder of the trained model or of its state (or empty). Errors as
// ReadModelConfig; kInvalidArgument: options.recipe names none, or one for other data.
absl::StatusOr<ModelText> ReadModelText(const ModelOptions& model, const VersionOptions& options,
                                        const std::string& trained);

}  // namespace cistern::app
