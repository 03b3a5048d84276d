// Long calls from Python, which Ctrl-C ends within 100 ms.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"

namespace cistern::python {

// Runs `call` on a thread of its own, without the GIL, and looks at Python's signals meanwhile.
//
// If a signal handler raises (KeyboardInterrupt), that exception is thrown at once and `call` is
// left to finish on its own, so it must own all that it touches. `kept`: an object (such as the
// caller's arrays) that is destroyed, under the GIL, once the call has ended.
absl::Status RunInterruptibly(std::function<absl::Status()> call, std::shared_ptr<void> kept);

// The same for a call that can be asked to end: `stop` is called once a handler has raised, and its
// exception is thrown when `call` has returned. `call` may borrow.
absl::Status RunStoppably(const std::function<absl::Status()>& call,
                          const std::function<void()>& stop);

}  // namespace cistern::python
