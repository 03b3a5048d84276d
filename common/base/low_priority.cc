#include "common/base/low_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace cistern {
namespace {

constexpr int kNice = 10;

// sched_setattr(2), for which glibc 2.36 has no wrapper.
struct SchedAttributes {
  uint32_t size = sizeof(SchedAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = kNice;
  uint32_t priority = 0;
  // The slice in nanoseconds, since Linux 6.12; older systems ignore it. By default it is about
  // 3 ms, and with nice 10 alone a thread that wakes up often waits for its end: behind a thread
  // that computes, on a busy machine, for 10 ms in the median, and with short slices for 2.4 ms.
  uint64_t runtime = 100'000;
  uint64_t deadline = 0, period = 0;
};
static_assert(sizeof(SchedAttributes) == 48);

// ioprio_set(2), without a wrapper: this thread, class "best effort", level 7 of 0 to 7.
void LowerDiskPriority() {
  constexpr int kWhoProcess = 1, kBestEffort = 2, kClassShift = 13, kLeast = 7;
  syscall(SYS_ioprio_set, kWhoProcess, 0, kBestEffort << kClassShift | kLeast);
}

}  // namespace

void RunWhenIdle() {
  const sched_param none = {};
  if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) return LowerPriority();
  LowerDiskPriority();
}

void LowerPriority() {
  const auto thread = static_cast<id_t>(gettid());  // on Linux the priority is that of a thread
  errno = 0;
  const int now = getpriority(PRIO_PROCESS, thread);
  if (errno == 0 && sched_getscheduler(0) == SCHED_OTHER) {
    SchedAttributes attributes;
    attributes.nice = std::max(now, kNice);
    if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0 && now < kNice) {
      setpriority(PRIO_PROCESS, thread, kNice);
    }
  }
  LowerDiskPriority();
}

}  // namespace cistern
