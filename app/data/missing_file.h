// Files that a caller names and that do not exist.
#pragma once

#include "common/base/status.h"

namespace cistern::app {

// Such a file is a wrong argument: kNotFound becomes kInvalidArgument.
inline absl::Status MissingIsWrong(const absl::Status& status) {
  return absl::IsNotFound(status) ? WithCode(status, absl::StatusCode::kInvalidArgument) : status;
}
template <typename T>
absl::StatusOr<T> MissingIsWrong(absl::StatusOr<T> result) {
  if (!absl::IsNotFound(result.status())) return result;
  return MissingIsWrong(result.status());
}

}  // namespace cistern::app
