// The version of this build, printed by `--version`.
#pragma once

namespace cistern {

inline constexpr char kVersion[] = "0.2.0";

}  // namespace cistern
