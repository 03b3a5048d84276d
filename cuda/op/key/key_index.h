// The static index of a pass: from a key to its place among the pass's ordered mixed keys
// (distinct_keys.h). Built once, then only read.
//
// Mixed keys are spread evenly, so the top bits of one say nearly where it stands: the index has
// the first place of each prefix, which about one key has, and a find searches between two entries
// by halves. So it ends after 2 + log2(keys of the prefix) reads, whatever the keys are.
#pragma once

#include "common/base/types.h"
#include "cuda/op/primitive/op.h"

namespace cistern::op {

// The row of a key that a pass does not have.
inline constexpr Row kNoRow = ~Row{0};

// Entries of the index of `count` keys, at most 2 count + 3. count < 2^32 - 1.
size_t KeyIndexEntries(size_t count);

// index[p] = the first place whose mixed key has a prefix of at least p; `count` where none has.
//
// mixed: [count], ordered, distinct. index: [KeyIndexEntries(count)].
void BuildKeyIndex(const uint64_t* mixed, size_t count, uint32_t* index, Stream& stream);

// rows[i] = the place of MixKey(keys[i]) in `mixed`, or kNoRow if it is not there, for i < n.
//
// keys, rows: [n]. mixed, count, index: of BuildKeyIndex.
void FindKeys(const Key* keys, size_t n, const uint64_t* mixed, size_t count, const uint32_t* index,
              Row* rows, Stream& stream);

}  // namespace cistern::op
