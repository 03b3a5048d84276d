// Ctrl-C and SIGTERM as a flag that long work looks at.
#pragma once

#include <atomic>

namespace cistern {

// From now on the first SIGINT or SIGTERM sets the returned flag; the second one of a kind ends the
// process as usual. Call once, from main's thread, before others start. The flag lives as long as
// the process.
const std::atomic<bool>* CatchInterrupts();

}  // namespace cistern
