// The distinct keys of batch after batch: what a pass pulls, once each.
//
// A mixed key is MixKey(key) (common/base/hash.h); ordered means ascending by mixed key. Mixed keys
// are spread evenly whatever the keys are, so that a place among them can be guessed (key_index.h).
#pragma once

#include "common/base/types.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// merged = the union of `held` and of the keys in `keys`, as mixed keys, ordered, each once;
// *merged_count = how many there are.
//
// keys: [count], not mixed, in any order, may repeat. held: [held_count], mixed, ordered, distinct.
// merged: room for held_count + count; what is behind *merged_count is undefined afterwards.
// merged_count: in the memory of the device. added: null, or room for `count`: the mixed keys of
// `merged` that `held` does not have, *merged_count - held_count, ordered; what is behind them is
// undefined. scratch: AddDistinctKeysScratchBytes, 256-byte
// aligned. kOutOfRange on a GPU if held_count + count >= 2^31.
void AddDistinctKeys(const Key* keys, size_t count, const uint64_t* held, size_t held_count,
                     uint64_t* merged, uint64_t* merged_count, uint64_t* added, void* scratch,
                     Stream& stream);

// Grows with both counts; it depends on the stream's device, too.
size_t AddDistinctKeysScratchBytes(size_t count, size_t held_count, Stream& stream);

}  // namespace cistern::op
