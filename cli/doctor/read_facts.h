// Reads the facts about this machine.
#pragma once

#include "cli/doctor/machine_facts.h"

namespace cistern::cli {

// Everything but folders and ports. What a system does not report keeps its default, that of a
// machine without faults. Runs a small kernel on each GPU. Takes some milliseconds; seconds with
// GPUs.
MachineFacts ReadMachine();

}  // namespace cistern::cli
