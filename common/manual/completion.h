// Completions of a program's commands, flags, and of values that are words, files or folders.
//
// Each is one file for one program, and names the program in all its functions.
#pragma once

#include <string>

#include "common/manual/manual.h"

namespace cistern {

// Needs bash 4 only, not the package bash-completion. File: bash-completion/completions/PROGRAM.
std::string BashCompletion(const CommandManual& program);
// File: zsh/site-functions/_PROGRAM, or any other folder of fpath.
std::string ZshCompletion(const CommandManual& program);
// File: fish/vendor_completions.d/PROGRAM.fish.
std::string FishCompletion(const CommandManual& program);

}  // namespace cistern
