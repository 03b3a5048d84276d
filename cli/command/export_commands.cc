#include "cli/command/export_commands.h"

namespace cistern::cli {

void AddExportCommands(Command& root) {
  Command& all = root.Add("export", "Writes a trained model in another form.",
                          "cistern export hugectr deepfm.json --model runs/deepfm --out deepfm");
  AddExportServing(all);
  AddExportHugectr(all);
  AddExportOnnx(all);
  AddExportXbox(all);
  AddExportCache(all);
  AddExportDnnPlugin(all);
}

}  // namespace cistern::cli
