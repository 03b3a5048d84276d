// How threads of a parallel loop wait for each other.
#pragma once

namespace cistern {

// By default an OpenMP thread that has finished its part spins for about a millisecond before it
// sleeps. On a machine that other processes also use, that time is taken from the threads that
// still work, and training becomes several times slower; without spinning, every loop pays for
// waking its threads. This lets threads spin for some microseconds, longer than the usual gap
// between two loops.
//
// The OpenMP library reads the setting when it is loaded, so the process executes its program once
// more, with the setting in its environment. Does nothing if the environment says how to wait
// (OMP_WAIT_POLICY, GOMP_SPINCOUNT), or if the program cannot be executed again.
//
// Call it first in main.
void SetOpenMpWaiting(char** argv);

}  // namespace cistern
