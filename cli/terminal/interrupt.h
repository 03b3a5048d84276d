// Turns Ctrl-C and SIGTERM into a flag that long-running work polls.
#pragma once

#include <atomic>

#include "absl/time/time.h"

namespace cistern {

// The first call installs handlers: the first SIGINT or SIGTERM sets the returned flag; a second
// signal of the same kind ends the process as usual. Make it from the main thread, before other
// threads start. Later calls only return the flag, from any thread: they do not arm the handlers
// again. The flag lives as long as the process.
const std::atomic<bool>* CatchInterrupts();

// Sleeps for `most`, or until soon after `interrupted` is set.
void SleepUnless(const std::atomic<bool>& interrupted, absl::Duration most);

}  // namespace cistern
