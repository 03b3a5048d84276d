// How a program of ours ends when memory runs out where nobody can go on without it.
//
// Calls that a caller can do without fail with kResourceExhausted (server/service/guarded_plane.h).
// Elsewhere - in a library that ends the process, in a thread of gRPC, while rows are stored - the
// process ends, as the system would end it a little later, but says what happened, how much memory
// it had and what to change. Committed state is on disk, whole.
#pragma once

#include "absl/strings/string_view.h"

namespace cistern {

// For main: from now on a std::bad_alloc that nobody catches, or an abort for want of memory, ends
// the process with exit code 1 and one message on standard error. program: "cistern-server". fix:
// what to change, after "give it more memory, or ". Both are kept, not copied.
void ExplainMemoryExhaustion(const char* program, const char* fix);

// Ends the process with exit code 1 and a message: `why`, then memory used, its limit, and the fix.
[[noreturn]] void EndWithMessage(absl::string_view why);

}  // namespace cistern
