// Memory traffic. BuildKeyIndex, per key: 8 bytes, and 4 for each of its one to two entries.
// FindKeys, per key: 8 for the key, two adjacent entries (one 32-byte sector), a mixed key (another
// sector; the keys of one prefix are adjacent) and 4 for the row: 76. The two sector reads are
// dependent and their addresses uniformly random, so random-sector throughput is the limit.
#include "cuda/op/key/key_index.h"

#include "cuda/op/key/key_search.h"
#include "cuda/op/primitive/launch.cuh"

namespace cistern::op::gpu {
namespace {

// One thread per index from 0 to `count`. A thread writes the entries of the prefixes whose first
// mixed key is at its index. Mixed keys are uniformly distributed, so these are few.
__global__ void __launch_bounds__(kBlockThreads)
    IndexKernel(const uint64_t* mixed, size_t count, unsigned bits, uint32_t* index) {
  const size_t place = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (place > count) return;
  const size_t first = place == 0 ? 0 : KeyPrefix(mixed[place - 1], bits) + 1;
  const size_t last = place == count ? size_t{1} << bits : KeyPrefix(mixed[place], bits);
  for (size_t p = first; p <= last; ++p) index[p] = static_cast<uint32_t>(place);
}

__global__ void __launch_bounds__(kBlockThreads)
    FindKernel(const Key* keys, size_t n, const uint64_t* mixed, unsigned bits,
               const uint32_t* index, Row* rows) {
  const size_t i = size_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i < n) rows[i] = FindMixedKey(MixKey(keys[i]), mixed, bits, index);
}

}  // namespace

void BuildKeyIndex(const uint64_t* mixed, size_t count, uint32_t* index, Stream& stream) {
  Launch("BuildKeyIndex", IndexKernel,
         dim3(static_cast<unsigned>(CeilDivide(count + 1, kBlockThreads))), dim3(kBlockThreads), 0,
         stream, mixed, count, KeyPrefixBits(count), index);
}

void FindKeys(const Key* keys, size_t n, const uint64_t* mixed, size_t count, const uint32_t* index,
              Row* rows, Stream& stream) {
  Launch("FindKeys", FindKernel, dim3(static_cast<unsigned>(CeilDivide(n, kBlockThreads))),
         dim3(kBlockThreads), 0, stream, keys, n, mixed, KeyPrefixBits(count), index, rows);
}

}  // namespace cistern::op::gpu
