// cistern: everything a person types.
#include <csignal>

#include "cli/commands.h"
#include "common/memory_exhausted.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  cistern::ExplainMemoryExhaustion("cistern", "make passes smaller (cistern.pass_memory_mb)");
  cistern::CommandLine line("cistern", "A distributed parameter server for CTR models.");
  cistern::AddAllCommands(line.root());
  return line.Run(argc, argv);
}
