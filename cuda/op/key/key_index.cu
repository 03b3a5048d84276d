// Bytes that must move. BuildKeyIndex, a key: 8, and 4 for each of its one to two entries.
// FindKeys, a key: 8, two entries that lie side by side (a sector of 32), a mixed key (another; a
// prefix of several keys has them side by side, too) and 4 for the row: 76. The two reads follow
// one another, and their addresses are spread evenly: the rate of random sectors bounds it.
#include "cuda/op/key/key_index.h"

#include "cuda/op/key/key_search.h"
#include "cuda/op/primitive/launch.cuh"

namespace cistern::op::gpu {
namespace {

// A thread of each place, and of the end: it writes the entries whose first place that is. Mixed
// keys are spread evenly, so these are few.
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
