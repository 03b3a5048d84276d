// Adds all commands of `cistern` and the subcommands of `data`, `export` and `ckpt`, in the order
// in which --help lists them.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern::cli {

void AddAllCommands(Command& root);

// The commands that declare nothing else, each in a file of its name.
void AddCertsCommand(Command& root);     // the certificates of a fleet behind TLS
void AddDemoCommand(Command& root);      // a small model with real processes, in under a minute
void AddDiagnoseCommand(Command& root);  // the facts about a fault, in a folder
void AddInitCommand(Command& root);    // inspects a table; writes a model file and a recipe for it
void AddPlanCommand(Command& root);    // the memory and disk that servers and workers need
void AddReportCommand(Command& root);  // one HTML page about one or more training runs
// A serving folder on the network, over the Open Inference Protocol. Announces {"ready":true,...}
// once it answers, and ends at SIGINT or SIGTERM, after the requests in flight.
void AddServeCommand(Command& root);
void AddServingCommands(Command& root);  // ls, verify, rollback: needs neither servers nor a model
void AddShrinkCommand(Command& root);    // decays statistics, removes rows not worth keeping
void AddTuneCommand(Command& root);      // searches learning rate, embedding dimension and depth
void AddVersionCommand(Command& root);   // describes this build and this machine

}  // namespace cistern::cli
