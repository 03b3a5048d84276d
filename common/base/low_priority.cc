#include "common/base/low_priority.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cistern {

void LowerPriority() {
  constexpr int kNice = 10;
  // ioprio_set(2): this thread, class "best effort", level 7 of 0 to 7. glibc has no wrapper.
  constexpr int kWhoProcess = 1, kBestEffort = 2, kClassShift = 13, kLeast = 7;
  const auto thread = static_cast<id_t>(gettid());  // on Linux the priority is that of a thread
  errno = 0;
  const int now = getpriority(PRIO_PROCESS, thread);
  if (errno == 0 && now < kNice) setpriority(PRIO_PROCESS, thread, kNice);
  syscall(SYS_ioprio_set, kWhoProcess, 0, kBestEffort << kClassShift | kLeast);
}

}  // namespace cistern
