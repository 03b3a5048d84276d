// cistern data convert, criteo, generate, inspect, keyset, lookup and pack.
#pragma once

#include "cli/terminal/command_line.h"

namespace cistern {

// Adds the command `data` with its subcommands.
void AddDataCommands(Command& root);

void AddConvertCommand(Command& data);
void AddCriteoCommand(Command& data);
void AddGenerateCommand(Command& data);
void AddInspectCommand(Command& data);
void AddPackCommand(Command& data);
void AddKeysetCommand(Command& data);
void AddLookupCommand(Command& data);

}  // namespace cistern
