// How many threads a parallel loop has, and how they wait for each other.
#pragma once

namespace cistern {

// By default an OpenMP thread that has finished its part spins for about a millisecond before it
// sleeps. On a machine that other processes also use, that time is taken from the threads that
// still work, and training becomes several times slower; without spinning, every loop pays for
// waking its threads. This lets threads spin for some microseconds, longer than the usual gap
// between two loops.
//
// The library also counts the processors that a process may run on, and knows nothing of a
// container's share of them: with more threads than that, the kernel stops all of them for most of
// the time. So a container with a quota gets one thread per core of it.
//
// The OpenMP library reads the settings when it is loaded, so the process executes its program once
// more, with the settings in its environment. Leaves alone what the environment says
// (OMP_WAIT_POLICY or GOMP_SPINCOUNT; OMP_NUM_THREADS). Does nothing if the program cannot be
// executed again.
//
// Call it first in main.
void SetOpenMpDefaults(char** argv);

}  // namespace cistern
