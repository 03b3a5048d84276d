// The version of this build, as `--version` prints it.
#pragma once

namespace cistern {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace cistern
