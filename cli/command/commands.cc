#include "cli/command/commands.h"

#include "cli/command/ckpt_commands.h"
#include "cli/command/data_commands.h"
#include "cli/command/doctor_command.h"
#include "cli/command/evaluate_commands.h"
#include "cli/command/export_commands.h"
#include "cli/command/publish_command.h"
#include "cli/command/save_load_commands.h"
#include "cli/command/scrub_command.h"
#include "cli/command/status_command.h"
#include "cli/command/table_commands.h"
#include "cli/command/top_command.h"
#include "cli/command/train_command.h"

namespace cistern::cli {
namespace {

constexpr char kFooter[] =
    "Each command has its own help: cistern train --help\n"
    "Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 cluster not reachable, 4 bad data,\n"
    "            5 corrupt checkpoint, 130 interrupted with its state saved\n"
    "Example:\n"
    "  cistern demo";

void AddDataCommands(Command& root) {
  Command& data = root.Add("data", "Creates and inspects data files.",
                           "cistern data inspect data/train/file_list.txt");
  AddConvertCommand(data);
  AddCriteoCommand(data);
  AddGenerateCommand(data);
  AddHeadCommand(data);
  AddInspectCommand(data);
  AddKeysetCommand(data);
  AddLookupCommand(data);
  AddPackCommand(data);
}

void AddCkptCommands(Command& root) {
  Command& ckpt = root.Add("ckpt", "Lists, compares, copies, rewrites and repairs commits on disk.",
                           "cistern ckpt ls saved");
  AddCkptListCommand(ckpt);
  AddCkptDiffCommand(ckpt);
  AddCkptChangesCommand(ckpt);
  AddCkptApplyCommand(ckpt);
  AddCkptReshardCommand(ckpt);
  AddCkptThresholdsCommand(ckpt);
  AddCkptRepairTermsCommand(ckpt);
  AddCkptPushCommand(ckpt);
  AddCkptPullCommand(ckpt);
  AddCkptAdoptManifestCommand(ckpt);
}

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

}  // namespace

void AddAllCommands(Command& root) {
  AddDemoCommand(root);
  AddInitCommand(root);
  AddPlanCommand(root);
  AddTrainCommand(root);
  AddTuneCommand(root);
  AddEvaluateCommand(root);
  AddPredictCommand(root);
  AddReportCommand(root);
  AddDataCommands(root);
  AddStatusCommand(root);
  AddTopCommand(root);
  AddSaveCommand(root);
  AddLoadCommand(root);
  AddExportCommands(root);
  AddPublishCommand(root);
  AddServeCommand(root);
  AddServingCommands(root);
  AddShrinkCommand(root);
  AddTableCommands(root);
  AddCkptCommands(root);
  AddVerifyCommand(root);
  AddScrubCommand(root);
  AddCertsCommand(root);
  AddDoctorCommand(root);
  AddDiagnoseCommand(root);
  AddVersionCommand(root);
  root.Footer(kFooter);
}

}  // namespace cistern::cli
