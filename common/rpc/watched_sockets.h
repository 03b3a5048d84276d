// Shows the bytes that gRPC reads from and writes to a socket to a StreamWatch.
//
// gRPC has no hook between a socket and its parser. Its sockets are read and written by recvmsg(2)
// and sendmsg(2), so watched_sockets.cc defines these two functions for the whole program: they
// call the ones of the C library, and show the bytes of watched sockets to their watch
// (docs/decisions/2026-11-23-frames-are-watched.md). In a program that does not link this file, or
// in a library that is loaded at run time, nothing is watched.
#pragma once

#include <memory>

#include "common/rpc/stream_watch.h"

namespace cistern {

// From now on, bytes of socket `fd` are shown to `watch`, and once it reports an error, reading
// fails with ECONNRESET. Any thread. Before the first byte is read.
void WatchSocket(int fd, std::shared_ptr<StreamWatch> watch);

// Ends it. Does nothing if another watch has replaced `watch`, because the number of a closed
// socket may be in use again. Any thread.
void UnwatchSocket(int fd, const StreamWatch* watch);

}  // namespace cistern
