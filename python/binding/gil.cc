#include "python/binding/gil.h"

#include <nanobind/nanobind.h>
#include <pthread.h>

#include "absl/base/attributes.h"
#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace cistern::python {
namespace {

namespace nb = nanobind;

// Never destroyed: threads may use them until the process is gone.
ABSL_CONST_INIT absl::Mutex mutex(absl::kConstInit);
int asking ABSL_GUARDED_BY(mutex) = 0;   // threads that are about to get the GIL
int running ABSL_GUARDED_BY(mutex) = 0;  // calls that run without it
bool ends ABSL_GUARDED_BY(mutex) = false;
pthread_t ending_thread ABSL_GUARDED_BY(mutex);  // it may go on asking

thread_local int running_here = 0;

// Called before the GIL is asked for.
void BeginAsking() {
  bool may_ask;
  {
    absl::MutexLock lock(&mutex);
    may_ask = !ends || pthread_equal(pthread_self(), ending_thread) != 0;
    if (may_ask) {
      ++asking;
    } else {
      running -= running_here;
    }
  }
  while (!may_ask) absl::SleepFor(absl::Hours(1));
}

// Runs on the thread that ends the interpreter, before the end begins. Threads that have asked
// already get the GIL now, and calls that are short have time to end: later they would meet
// destructors of static objects. (The limit is also for a process that was forked meanwhile: its
// copies of such threads do not exist.)
void EndInterpreter() {
  // Daemon threads keep what they use.
  const auto threads = nb::module_::import_("threading").attr("active_count")();
  if (nb::cast<int>(threads) > 1) nb::set_leak_warnings(false);
  PyThreadState* const state = PyEval_SaveThread();
  {
    const auto is_quiet = []() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return asking == 0 && running == 0;
    };
    absl::MutexLock lock(&mutex);
    ends = true;
    ending_thread = pthread_self();
    mutex.AwaitWithTimeout(absl::Condition(&is_quiet), absl::Seconds(2));
  }
  PyEval_RestoreThread(state);
}

}  // namespace

ReleaseGil::ReleaseGil() : state_(PyEval_SaveThread()) {
  absl::MutexLock lock(&mutex);
  ++running;
  ++running_here;
}

ReleaseGil::~ReleaseGil() {
  BeginAsking();
  PyEval_RestoreThread(state_);
  absl::MutexLock lock(&mutex);
  --asking;
  --running;
  --running_here;
}

AcquireGil::AcquireGil() {
  BeginAsking();
  state_ = PyGILState_Ensure();
  absl::MutexLock lock(&mutex);
  --asking;
}

void WatchInterpreterEnd() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&EndInterpreter));
}

}  // namespace cistern::python
