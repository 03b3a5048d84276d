// cistern export FORM: writes a trained model in other programs' file formats, and for serving. One
// file per form.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

// The forms, which commands.cc adds; `all` is the command `export`.
void AddExportCache(Command& all);
void AddExportDnnPlugin(Command& all);
void AddExportHugectr(Command& all);
void AddExportOnnx(Command& all);
void AddExportServing(Command& all);
void AddExportXbox(Command& all);

}  // namespace cistern::cli
