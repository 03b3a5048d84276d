// What the commands that write a version for serving share: its flags, and the model file in it.
#pragma once

#include <string>

#include "app/model/model_source.h"
#include "cli/terminal/command_line.h"
#include "worker/export/serving/serving_model.h"

namespace cistern {

struct VersionFlags {
  std::string out = {};  // the serving folder
  std::string precision = "float32";
  uint64_t keep = 2;
  std::string recipe = {};
  std::string name = {};

  ServingOptions options() const;
};

// Adds --out, --precision, --keep, --recipe and --name.
void AddVersionFlags(Command& command, VersionFlags* flags);

// Something in `folder` that does not belong into a serving folder without HEAD; empty: there is
// nothing, or the folder cannot be read. An export that is running, or was killed, leaves its
// locks, an unfinished HEAD and the folder of a version.
std::string OtherThingIn(const std::string& folder);

// kInvalidArgument, with a fix: the folder flags.out holds other things than versions of a model,
// which a new version would be mixed with; or flags.name is no name.
absl::Status CheckServingPlace(const VersionFlags& flags);

// What an operator should know about the name of a version: it differs from that of the model,
// or from that of the version before. Empty: neither.
std::string NameNote(const ServingWritten& written, const std::string& root);

// Reads the text of the model file and the recipe of its data: that of flags.recipe, else the one
// in `trained`, the folder of the trained model or of its state (or empty). Errors as
// ReadModelConfig; kInvalidArgument: flags.recipe names none, or one for other data.
absl::StatusOr<ModelText> ReadModelText(const app::ModelOptions& model, const VersionFlags& flags,
                                        const std::string& trained);

}  // namespace cistern
