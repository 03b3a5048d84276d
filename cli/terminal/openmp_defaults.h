// How many threads a parallel loop has, and how they wait for each other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/machine_limits.h"

namespace cistern::cli {

// A variable of the environment that the OpenMP library reads.
struct OpenMpSetting {
  std::string name;
  std::string value;  // "": unset it, for the library's default
  std::string note;   // for the user, whose value is replaced; "" if there was none
};

// The settings that the environment should have and does not.
//
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
// Leaves alone what the environment says (OMP_WAIT_POLICY or GOMP_SPINCOUNT; OMP_NUM_THREADS), but
// for values with which the library crashes or ends the process: more than kMaxThreads threads, and
// stacks (OMP_STACKSIZE, GOMP_STACKSIZE) that are smaller than 128 KiB or larger than 1 GiB.
//
// variable: getenv, or a test's lookup; returns null for an unset name.
std::vector<OpenMpSetting> OpenMpSettingsOf(const std::function<const char*(const char*)>& variable,
                                            const MachineLimits& limits);

// Makes these settings, and prints their notes to standard error. The OpenMP library reads them
// when it is loaded, so the process executes its program once more. Does nothing if the program
// cannot be executed again.
//
// Call it first in main.
void SetOpenMpDefaults(char** argv);

}  // namespace cistern::cli
