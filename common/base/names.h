// Validation of names that become path components: tables, saved models.
#pragma once

#include <string>

#include "common/base/status.h"

namespace cistern {

// OK for [A-Za-z0-9][A-Za-z0-9._-]{0,127}; else kInvalidArgument that states the rule.
absl::Status CheckName(const std::string& name);

}  // namespace cistern
