// What a server reads from the network, as functions of bytes that check what comes of it.
#pragma once

#include <vector>

#include "test/fuzz/fuzz_target.h"

namespace cistern {

// frame: a byte of flags, then a frame: read as a request and as a reply, and handed to a server.
//   bits 0 to 2 the kind; 3: the caller's identity is made right; 4: the body's hash is made that
//   of the writer; 5: the pass is made the open one; 6: the frame comes in pieces of 7 bytes
// control: calls of the control plane, one after the other on one server. A call is a byte for the
//   verb (its place in CISTERN_CONTROL_METHODS), a byte of flags, two bytes of length, the message.
//   bits 0: the identity is made right; 1: with the writer's secret; 2: pass, changes
//   and the manifest's place are made those of the next pass; the first call also 6: the server's
//   commits are durable; 7: it has no tables
// Neither lets a call through that leaves other committed rows behind than before, unless the
// writer has made it.
const std::vector<FuzzTarget>& RpcTargets();

// Bits of the flags above.
enum FrameFuzz { kRightCaller = 8, kRightHash = 16, kRightPass = 32, kInPieces = 64 };
enum ControlFuzz {
  kRightIdentity = 1,
  kRightSecret = 2,
  kNextPass = 4,
  kOnDurable = 64,
  kOnEmpty = 128
};

}  // namespace cistern
