// The program cistern, which holds every command.
#include <csignal>

#include "cli/command/commands.h"
#include "cli/terminal/openmp_defaults.h"
#include "common/base/memory_exhausted.h"
#include "worker/data/storage/storage.h"

int main(int argc, char** argv) {
  cistern::cli::SetOpenMpDefaults(argv);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` returns an error instead
  cistern::ExplainMemoryExhaustion("cistern", "make passes smaller (cistern.pass_memory_mb)");
  cistern::cli::CommandLine line("cistern", "A distributed parameter server for CTR models.");
  cistern::cli::AddAllCommands(line.root());
  const int code = line.Run(argc, argv);
  cistern::data::CloseRemoteStorage();
  return code;
}
