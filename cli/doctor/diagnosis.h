// What cistern doctor concludes from the facts about a machine.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor/machine_facts.h"

namespace cistern::cli {

// kWarning: works, but slower, or not for long. kProblem: something will fail.
enum class Health { kGood, kWarning, kProblem };

struct Finding {
  std::string subject;  // "open files", "disk /data"
  Health health = Health::kGood;
  std::string found;  // "1024"; with an effect, if the health is not good
  std::string fix;    // what to do, with the command to type; empty if good
};

// Everything that was judged, good or not, in the order: machine, memory, limits, clock, GPUs,
// folders, ports.
std::vector<Finding> Diagnose(const MachineFacts& facts);

}  // namespace cistern::cli
