// cistern: everything a person types.
#include <csignal>

#include "cli/commands.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  cistern::CommandLine line("cistern", "A distributed parameter server for CTR models.");
  cistern::AddAllCommands(line.root());
  return line.Run(argc, argv);
}
