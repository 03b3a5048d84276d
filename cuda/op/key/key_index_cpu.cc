#include "cuda/op/key/key_index.h"

#include "cuda/op/key/key_search.h"
#include "cuda/op/primitive/cpu.h"

namespace cistern::op {

namespace gpu {  // key_index.cu
decltype(op::BuildKeyIndex) BuildKeyIndex;
decltype(op::FindKeys) FindKeys;
}  // namespace gpu

size_t KeyIndexEntries(size_t count) {
  return (size_t{1} << KeyPrefixBits(count)) + 1;
}

void BuildKeyIndex(const uint64_t* mixed, size_t count, uint32_t* index, Stream& stream) {
  CISTERN_RUN_ON_GPU(BuildKeyIndex, mixed, count, index);
  const unsigned bits = KeyPrefixBits(count);
  uint64_t prefix = 0;
  for (size_t place = 0; place < count; ++place) {
    for (; prefix <= KeyPrefix(mixed[place], bits); ++prefix) {
      index[prefix] = static_cast<uint32_t>(place);
    }
  }
  for (; prefix < KeyIndexEntries(count); ++prefix) index[prefix] = static_cast<uint32_t>(count);
}

void FindKeys(const Key* keys, size_t n, const uint64_t* mixed, size_t count, const uint32_t* index,
              Row* rows, Stream& stream) {
  CISTERN_RUN_ON_GPU(FindKeys, keys, n, mixed, count, index, rows);
  const unsigned bits = KeyPrefixBits(count);
  ForPieces(n, kElementGrain, 8 * n, [=](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      rows[i] = FindMixedKey(MixKey(keys[i]), mixed, bits, index);
    }
  });
}

}  // namespace cistern::op
