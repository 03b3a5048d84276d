// How our programs end when an allocation fails, or no thread can be started, and the process
// cannot continue.
//
// A failed allocation inside a call becomes kResourceExhausted (server/service/guarded_plane.h).
// Elsewhere (in a library that aborts, in a gRPC thread, while rows are stored) the process ends,
// as the system would end it a little later, but with a message: what happened, how much memory the
// process used, and what to change. Committed state is intact on disk. The same holds for limits of
// threads, which gRPC answers with an abort and without a word.
#pragma once

#include "absl/strings/string_view.h"

namespace cistern {

// Called by main. From then on an uncaught std::bad_alloc, or an abort caused by a lack of memory
// or of threads, ends the process with exit code 1 and one message on standard error. program: e.g.
// "cistern-server". fix: completes "give it more memory, or ". Both pointers are kept, not copied.
void ExplainMemoryExhaustion(const char* program, const char* fix);

// Ends the process with exit code 1 and a message: `why`, the memory in use, its limit, and the
// fix.
[[noreturn]] void EndWithMessage(absl::string_view why);

}  // namespace cistern
