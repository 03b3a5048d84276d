// Export of a model for serving: a version in a serving folder (common/serving/serving_version.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/serving/serving_version.h"
#include "worker/data/recipe/recipe_folder.h"
#include "worker/export/committed_model.h"
#include "worker/export/serving/table_layers.h"
#include "worker/model/config/model_config.h"

namespace cistern {

// The model file as the user wrote it.
struct ModelText {
  std::string path;  // its name becomes the model's name
  std::string text;
  std::vector<std::string> overrides;            // --set
  std::string name = {};                         // of the model, instead of that of the file
  std::optional<data::FoundRecipe> recipe = {};  // of the data that the model was trained on
};

struct ServingOptions {
  std::string root;  // the serving folder; created if missing
  RowPrecision precision = RowPrecision::kFloat32;
  size_t keep = 2;  // versions to keep, at least one
  // Decides whether a new version, which is complete but not the current one, may become it. After
  // an error it is removed. Null: it may.
  std::function<absl::Status(const ServingHead&)> accept = nullptr;
  // The model's name, from this version on. Empty: the name of the current version, because clients
  // ask for it; in a new folder that of the model (ModelText).
  std::string name = {};
};

struct ServingWritten {
  ServingVersion version;
  uint64_t rows = 0, bytes = 0;
  std::string own_name;     // that of the model: its run, or its file
  std::string name_before;  // that of the version that was the current one; empty: there was none
};

// Writes the committed state as a new version and makes it the current one: HEAD is replaced when
// everything else is on disk. Older versions beyond `keep` are removed. The bytes of a version
// depend only on the state and the options.
//
// Memory: 8 bytes a row of the largest table, and buffers.
// kFailedPrecondition: another process writes to the folder at this moment.
// kDataLoss: a weight is not finite, with its table and key.
absl::StatusOr<ServingWritten> WriteServingModel(FileSystem& files,
                                                 const model::ModelConfig& config,
                                                 const ModelText& text, CommittedModel& model,
                                                 const ServingOptions& options);

// What a new version shares with an older one.
struct ServingChanges {
  ServingVersion previous;
  // The model's Scan visits every row; else only those that changed since `previous`, and
  // ScanRemoved those that are gone.
  bool complete = true;
  // A table is due to be written as a whole once its changed rows exceed this share of all, or once
  // it has this many layers.
  double base_share = 0.2;
  size_t most_layers = 16;
  // Which tables this version writes as a whole: those that are due, or only those of which at
  // least half of the rows have changed since `previous`, which costs little more than the changes.
  enum class Whole { kDue, kMostlyChanged };
  Whole whole = Whole::kDue;
  VerifiedFiles* verified = nullptr;  // TableLayers::Open
};

// Writes a version that consists of the files of an older one and of what has changed since. The
// result reads as if it had been written as a whole.
//
// kInvalidArgument: the older version has other tables or another precision. kDataLoss: its files
// are corrupt.
absl::StatusOr<ServingWritten> WriteServingChanges(FileSystem& files,
                                                   const model::ModelConfig& config,
                                                   const ModelText& text, CommittedModel& model,
                                                   const ServingChanges& changes,
                                                   const ServingOptions& options);

}  // namespace cistern
