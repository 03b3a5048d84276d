// Opens the model of a serving folder (common/serving/serving_version.h).
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "serve/predictor/predictor.h"

namespace cistern::serve {

struct PredictorOptions {
  // Predictions that run at the same time; further calls wait. 0: one per core.
  int threads = 0;
  size_t max_samples = 16384;         // of one request
  size_t max_keys = size_t{1} << 22;  // of one request, over all inputs
  // How often HEAD is read for a newer version, which is then served; 0: never.
  int poll_ms = 200;
  bool verify = false;  // read every byte of the rows when opening them
  // If the current version is corrupt, opens the newest older one that is not, with a warning in
  // the log; else that is an error.
  bool fall_back = false;
  // The version to serve: its folder ("0000000042"). Empty: the one that HEAD names.
  std::string version = {};
  // The name of the model, whatever its versions say. Empty: the name of the version that is
  // served.
  std::string name = {};
};

// Serves the current version of `folder`. A newer version replaces it as a whole, while
// predictions run; one that cannot be read is reported in the log, and the older one stays.
//
// options.version: only that version is served.
//
// kNotFound: there is no such folder or version; kDataLoss: corrupt files; kInvalidArgument: the
// model file is not one that this program knows.
absl::StatusOr<std::unique_ptr<Predictor>> OpenPredictor(const std::string& folder,
                                                         const PredictorOptions& options = {});

}  // namespace cistern::serve
