#include "python/binding/interrupt.h"

#include <nanobind/nanobind.h>

#include <new>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "python/binding/gil.h"

namespace cistern::python {
namespace {

namespace nb = nanobind;

struct Call {
  absl::Mutex mutex;
  bool done ABSL_GUARDED_BY(mutex) = false;
  bool abandoned ABSL_GUARDED_BY(mutex) = false;
  absl::Status status ABSL_GUARDED_BY(mutex);
  std::shared_ptr<void> kept;
};

// Frees what an abandoned call kept. If the interpreter is ending, this thread stays here.
void FreeUnderGil(std::shared_ptr<void> kept) {
  if (kept == nullptr) return;
  AcquireGil gil;
  kept.reset();
}

void RunOn(const std::shared_ptr<Call>& call, const std::function<absl::Status()>& body) {
  absl::Status status;
  try {
    status = body();
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("there is not enough memory");
  }
  bool abandoned;
  {
    absl::MutexLock lock(&call->mutex);
    call->status = std::move(status);
    call->done = true;
    abandoned = call->abandoned;
  }
  if (abandoned) FreeUnderGil(std::move(call->kept));
}

// Waits for the call; true once it is done, false if a signal handler has raised meanwhile. Called
// without the GIL; after false the exception is set.
bool Await(Call& call) {
  while (true) {
    {
      absl::MutexLock lock(&call.mutex);
      auto is_done = [&call]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return call.done; };
      if (call.mutex.AwaitWithTimeout(absl::Condition(&is_done), absl::Milliseconds(100))) {
        return true;
      }
    }
    AcquireGil gil;
    if (PyErr_CheckSignals() != 0) return false;
  }
}

absl::Status StatusOf(Call& call) {
  absl::MutexLock lock(&call.mutex);
  return call.status;
}

}  // namespace

absl::Status RunInterruptibly(std::function<absl::Status()> body, std::shared_ptr<void> kept) {
  auto call = std::make_shared<Call>();
  call->kept = std::move(kept);
  ReleaseGil no_gil;
  std::thread thread([call, body = std::move(body)] { RunOn(call, body); });
  if (Await(*call)) {
    thread.join();
    return StatusOf(*call);
  }
  bool abandoned;
  {
    absl::MutexLock lock(&call->mutex);
    abandoned = call->abandoned = !call->done;
  }
  if (abandoned) {
    thread.detach();
  } else {
    thread.join();
  }
  AcquireGil gil;
  throw nb::python_error();
}

absl::Status RunStoppably(const std::function<absl::Status()>& body,
                          const std::function<void()>& stop) {
  auto call = std::make_shared<Call>();
  ReleaseGil no_gil;
  std::thread thread([call, &body] { RunOn(call, body); });
  if (Await(*call)) {
    thread.join();
    return StatusOf(*call);
  }
  stop();
  thread.join();
  AcquireGil gil;
  throw nb::python_error();
}

}  // namespace cistern::python
