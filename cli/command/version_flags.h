// What the commands that write a version for serving share: its flags, and the model file in it.
#pragma once

#include <string>

#include "cli/session/model_source.h"
#include "cli/terminal/command_line.h"
#include "worker/export/serving/serving_model.h"

namespace cistern {

struct VersionFlags {
  std::string out = {};  // the serving folder
  std::string precision = "float32";
  uint64_t keep = 2;
  std::string recipe = {};

  ServingOptions options() const;
};

// Adds --out, --precision, --keep and --recipe.
void AddVersionFlags(Command& command, VersionFlags* flags);

// kInvalidArgument, with a fix: the folder flags.out holds other things than versions of a model,
// which a new version would be mixed with.
absl::Status CheckServingPlace(const VersionFlags& flags);

// Reads the text of the model file and the recipe of its data: that of flags.recipe, else the one
// in `place`, the folder of the trained model ("runs/a", "runs/a@12", or empty). Errors as
// ReadModelConfig; kInvalidArgument: flags.recipe names none, or one for other data.
absl::StatusOr<ModelText> ReadModelText(const ModelFlags& model, const VersionFlags& flags,
                                        const std::string& place);

}  // namespace cistern
