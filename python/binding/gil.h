// The GIL. A thread that asks for it while the interpreter ends is ended inside the request, before
// Python 3.14; that cannot be done to a thread with C++ frames, so the process would abort. (Daemon
// threads are such threads, and calls that Ctrl-C has abandoned.) Here such a thread waits until
// the process is gone. No other code of the bindings asks for the GIL.
#pragma once

#include <Python.h>

namespace cistern::python {

// Gives up the GIL for the life of this object.
class ReleaseGil {
 public:
  ReleaseGil();
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* const state_;
};

// Holds the GIL for the life of this object, on any thread.
class AcquireGil {
 public:
  AcquireGil();
  ~AcquireGil() { PyGILState_Release(state_); }
  AcquireGil(const AcquireGil&) = delete;
  AcquireGil& operator=(const AcquireGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// Has Python say when it ends. Called once, before any of the above.
void WatchInterpreterEnd();

}  // namespace cistern::python
