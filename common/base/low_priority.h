// For work that may wait: background work of a program that answers requests.
#pragma once

namespace cistern {

// Lowers the priority of the calling thread, and of threads that it starts later, for the processor
// (nice 10, and slices so short that a thread that wakes up need not wait for the end of one) and
// for the disk (the lowest of the normal ones). Never raises it. Only a hint: a system that refuses
// is not an error. There is no way back without privileges.
void LowerPriority();

// Lets the calling thread, and threads that it starts later, run only where a processor has nothing
// else to do (SCHED_IDLE), so that a thread which wakes up never waits for them. On a machine that
// is busy without a pause they get about one part in 300 of a processor. Otherwise as
// LowerPriority.
void RunWhenIdle();

}  // namespace cistern
