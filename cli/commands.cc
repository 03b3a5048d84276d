#include "cli/commands.h"

#include "cli/data_commands.h"
#include "cli/demo_command.h"
#include "cli/evaluate_commands.h"
#include "cli/save_load_commands.h"
#include "cli/status_command.h"
#include "cli/table_commands.h"
#include "cli/train_command.h"
#include "cli/version_command.h"

namespace cistern {

void AddAllCommands(Command& root) {
  AddDemoCommand(root);
  AddTrainCommand(root);
  AddEvaluateCommand(root);
  AddPredictCommand(root);
  AddDataCommands(root);
  AddStatusCommand(root);
  AddSaveCommand(root);
  AddLoadCommand(root);
  AddTableCommands(root);
  AddVersionCommand(root);
}

}  // namespace cistern
