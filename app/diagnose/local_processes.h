// The processes of Cistern on this machine, from /proc.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/base/status.h"

namespace cistern::app {

struct LocalProcess {
  pid_t pid = 0;
  std::string name;  // "cistern-server"
};

// Those whose program is called cistern, cistern-server or cistern-worker, without this process, by
// number. Those of other users are among them.
std::vector<LocalProcess> LocalProcesses();

// What the process is and does: command line, memory, limits, and of each thread its name, state
// and time. kNotFound: it has ended.
absl::StatusOr<std::string> DescribeProcess(pid_t pid);

// The call stacks of all its threads, by gdb, which stops the process for about a second.
// scratch: an existing folder for gdb's messages. kFailedPrecondition: there is no gdb, or it may
// not look into the process.
absl::StatusOr<std::string> StacksOf(pid_t pid, const std::string& scratch);

}  // namespace cistern::app
