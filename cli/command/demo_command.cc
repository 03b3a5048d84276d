#include "cli/command/demo_command.h"

#include <memory>

#include "cli/command/demo.h"
#include "cli/terminal/interrupt.h"

namespace cistern {

void AddDemoCommand(Command& root) {
  auto flags = std::make_shared<DemoFlags>();
  Command& command = root.Add(
      "demo", "Trains, saves, loads and compares on this machine, with real servers and a worker.",
      "cistern demo --dir demo");
  command.Flag(
      "--dir", &flags->dir,
      {"DIR", "Where data, model and logs go, kept; without it a temporary folder.", "--dir demo"});
  command.Flag("--samples", &flags->samples,
               {"INT", "Samples to train on, 4,000 or more; a quarter as many to test.",
                "--samples 200000"});
  command.Switch("--keep", &flags->keep,
                 {"", "Keeps the temporary folder and prints its name.", "--keep"});
  command.Does([flags](Console& console) {
    const std::atomic<bool>* interrupted = CatchInterrupts();
    return Demo(*flags, interrupted, &console).Run();
  });
}

}  // namespace cistern
