// Turns Ctrl-C and SIGTERM into a flag that long-running work polls.
#pragma once

#include <atomic>

namespace cistern::cli {

// The first call installs handlers: the first SIGINT or SIGTERM sets the returned flag, and a
// second one ends the process as usual. One of the other kind within a quarter of a second of the
// first is part of the same stop. Make the first call from the main thread, before other threads
// start. Later calls only return the flag, from any thread: they do not arm the handlers again. The
// flag lives as long as the process.
const std::atomic<bool>* CatchInterrupts();

}  // namespace cistern::cli
