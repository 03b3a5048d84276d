#include "common/base/blocked_signals.h"

#include <pthread.h>
#include <signal.h>

#include "common/base/check.h"

namespace cistern {
namespace {

thread_local int scopes = 0;     // BlockedSignals on this thread
thread_local sigset_t before{};  // the mask outside the first of them

sigset_t AsynchronousSignals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) {
    sigdelset(&signals, fault);
  }
  return signals;
}

}  // namespace

BlockedSignals::BlockedSignals() {
  static const sigset_t all = AsynchronousSignals();
  if (scopes++ > 0) return;
  CISTERN_CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
}

BlockedSignals::~BlockedSignals() {
  if (--scopes > 0) return;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void BlockSignalsOfPoolThread() {
  static thread_local const BlockedSignals until_the_end;
}

}  // namespace cistern
