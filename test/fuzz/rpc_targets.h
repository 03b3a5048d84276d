// Fuzz targets for the bytes that a server reads from the network.
#pragma once

#include <vector>

#include "test/fuzz/fuzz_target.h"

namespace cistern {

// frame: a byte of flags, then a frame. Reads the frame as a request and as a reply, and passes
//   it to a server. Bits 0 to 2: the kind; 3: sets the caller's identity; 4: sets the body hash
//   that the writer would send; 5: sets the pass to the open one; 6: splits the frame into pieces
//   of 7 bytes.
// control: a sequence of control-plane calls on one server. A call is a byte for the verb (index
//   in CISTERN_CONTROL_METHODS), a byte of flags, two bytes of length, and the message. Bit 0: sets
//   the identity; 1: adds the writer's secret; 2: sets pass, changes and the manifest's predecessor
//   to those of the next pass. In the first call also 6: the server's commits are durable; 7: the
//   server has no tables.
// Both abort if a call that is not the writer's changes committed rows.
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
