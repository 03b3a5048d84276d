// The distinct keys of a pass, collected batch by batch: the keys that the pass pulls.
//
// A mixed key is MixKey(key) (common/base/hash.h); "ordered" means ascending by mixed key. Mixed
// keys are uniformly distributed for any set of keys, so a key's index among them can be estimated
// (key_index.h).
#pragma once

#include "common/base/types.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// merged = the union of `held` and of the mixed keys of `keys`, ordered, without duplicates;
// *merged_count = its size.
//
// keys: [count], not mixed, any order, duplicates allowed. held: [held_count], mixed, ordered,
// distinct. merged: room for held_count + count; elements from *merged_count on are undefined
// afterwards. merged_count: in device memory. added: null, or room for `count`: receives the
// *merged_count - held_count mixed keys of `merged` that are not in `held`, ordered; the elements
// after them are undefined. scratch: AddDistinctKeysScratchBytes, 256-byte aligned. kOutOfRange on
// a GPU if held_count + count >= 2^31.
void AddDistinctKeys(const Key* keys, size_t count, const uint64_t* held, size_t held_count,
                     uint64_t* merged, uint64_t* merged_count, uint64_t* added, void* scratch,
                     Stream& stream);

// Grows with both counts; also depends on the stream's device.
size_t AddDistinctKeysScratchBytes(size_t count, size_t held_count, Stream& stream);

}  // namespace cistern::op
