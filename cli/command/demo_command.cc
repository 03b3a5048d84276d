#include "cli/command/demo_command.h"

#include <cstdlib>
#include <memory>

#include "cli/command/demo.h"
#include "cli/terminal/interrupt.h"

namespace cistern {

// A disk of 100 GB.
constexpr uint64_t kMostSamples = 1'000'000'000;

void AddDemoCommand(Command& root) {
  auto flags = std::make_shared<DemoFlags>();
  Command& command = root.Add(
      "demo",
      "Trains, saves and reloads a small model with real servers, and compares the results.",
      "cistern demo --dir demo");
  command.Flag(
      "--dir", &flags->dir,
      {"DIR", "New folder for data, model and logs, which is kept; by default a temporary one.",
       "--dir demo"});
  command.Flag("--samples", &flags->samples,
               {"INT", "Number of training samples, 4,000 or more; a quarter as many for testing.",
                "--samples 200000", !kRequired, kMostSamples});
  command.Switch("--keep", &flags->keep,
                 {"", "Keeps the temporary folder and prints its name.", "--keep"});
  command.Does([flags](Console& console) {
    const std::atomic<bool>* interrupted = CatchInterrupts();
    // Its servers are on loopback, in plain text, whatever fleet this shell is set up for.
    for (const char* name : {"CISTERN_TLS_CA", "CISTERN_TLS_CERT", "CISTERN_TLS_KEY"}) {
      unsetenv(name);
    }
    return Demo(*flags, interrupted, &console).Run();
  });
}

}  // namespace cistern
