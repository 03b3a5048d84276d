// Flags that people know from other programs, in the words of this one.
#pragma once

#include <string>
#include <vector>

namespace cistern::cli {

// What to type in place of the unknown flag `typed`, such as "--set solver.num_epochs=N" for
// --epochs; "" if none of `own`, the flags of the command, does that. For "-", a word without a
// flag: the flag that names data.
std::string OwnFlagFor(const std::string& typed, const std::vector<std::string>& own);

}  // namespace cistern::cli
