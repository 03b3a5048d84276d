#include "server/service/guarded_plane.h"

#include <exception>
#include <new>

#include "common/base/memory_exhausted.h"

namespace cistern {
absl::Status StatusOfException(const char* call) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        call,
        ": this server is out of memory; give it more, use more servers, or make passes "
        "smaller"));
  } catch (const std::exception& thrown) {
    return absl::InternalError(absl::StrCat(call, ": ", thrown.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat(call, ": an unknown exception"));
  }
}

absl::Status GuardedPlane::WhatWasThrown(const char* name, CallEffect effect) {
  const absl::Status status = StatusOfException(name);
  if (effect == CallEffect::kKeepsTables) return status;
  if (state_->stage.durable() == nullptr) {
    EndWithMessage(
        absl::StrCat("tables were being changed, and these servers keep no commits to "
                     "restore: ",
                     status.message()));
  }
  state_->stage.durable()->DistrustMemory();
  return status;
}

}  // namespace cistern
