// The read-only index of a pass: it maps a key to its index among the pass's ordered mixed keys
// (distinct_keys.h).
//
// Mixed keys are uniformly distributed, so the top bits of a key give its approximate index. The
// table holds the first index of each prefix; a prefix has about one key. A lookup binary-searches
// between two adjacent entries and ends after 2 + log2(keys of the prefix) reads.
#pragma once

#include "common/base/types.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// The row of a key that is not in the pass.
inline constexpr Row kNoRow = ~Row{0};

// The number of entries for `count` keys, at most 2 count + 3. count < 2^32 - 1.
size_t KeyIndexEntries(size_t count);

// index[p] = the first index whose mixed key has a prefix of at least p, or `count` if there is no
// such key.
//
// mixed: [count], ordered, distinct. index: [KeyIndexEntries(count)].
void BuildKeyIndex(const uint64_t* mixed, size_t count, uint32_t* index, Stream& stream);

// rows[i] = the index of MixKey(keys[i]) in `mixed`, or kNoRow if it is absent, for i < n.
//
// keys, rows: [n]. mixed, count, index: as in BuildKeyIndex.
void FindKeys(const Key* keys, size_t n, const uint64_t* mixed, size_t count, const uint32_t* index,
              Row* rows, Stream& stream);

}  // namespace cistern::op
