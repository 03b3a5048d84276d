// The check that every constant of a schema passes.
#pragma once

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace cistern {

// kInvalidArgument, which names the field, for NaN and Inf.
inline absl::Status FiniteConstant(float x, const char* field) {
  if (std::isfinite(x)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is not a finite number"));
}

}  // namespace cistern
