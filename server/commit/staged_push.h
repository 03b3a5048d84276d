// One push of a pass, as a server keeps it until the pass commits.
#pragma once

#include <cstdint>

#include "common/base/shared_array.h"
#include "common/base/types.h"

namespace cistern::server {

// One push, decoded. keys, values and has_embedx are as in a push frame, and share its bytes where
// an embedded worker sent it; a dense push has only values or gradients.
struct StagedPush {
  bool dense = false;
  bool gradient = false;  // dense: one gradient per row instead of its columns
  bool removal = false;   // sparse: the rows of `keys` go; no values and no has_embedx
  TableId table = 0;
  uint64_t start = 0;               // dense: first row
  SharedArray<Key> keys;            // sparse
  SharedArray<float> values;        // [count, stride]; gradient: [count]
  SharedArray<uint8_t> has_embedx;  // sparse: [count]
  uint64_t body_hash = 0;           // of the frame; tells a repeat from a conflict

  uint64_t bytes() const {
    return sizeof(StagedPush) + keys.size() * sizeof(Key) + values.size() * sizeof(float) +
           has_embedx.size();
  }
};

}  // namespace cistern::server
