// The last place where an exception may arrive: a call that throws fails, and the server lives.
#pragma once

#include <exception>
#include <new>

#include "common/base/status.h"

namespace cistern {

// The status of `call()`; kResourceExhausted if it finds no memory, kInternal for anything else
// that a library throws.
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
