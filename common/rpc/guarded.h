// The outermost exception handler of a call: a call that throws fails, and the server keeps
// running.
#pragma once

#include <exception>
#include <new>

#include "common/base/status.h"

namespace cistern {

// Returns the status of `call()`; kResourceExhausted if it runs out of memory, kInternal for any
// other exception of a library.
template <class F>
absl::Status Guarded(const F& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "this server is out of memory; give it more, or use more servers");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("this call failed: ", error.what()));
  }
}

}  // namespace cistern
