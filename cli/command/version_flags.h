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

  ServingOptions options() const;
};

// Adds --out, --precision and --keep.
void AddVersionFlags(Command& command, VersionFlags* flags);

// Reads the text of the model file. Errors as ReadModelConfig.
absl::StatusOr<ModelText> ReadModelText(const ModelFlags& model);

}  // namespace cistern
