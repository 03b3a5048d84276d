// Memory traffic per row: 2 * bytes, and 4 for each list of rows.
#include "cuda/op/embedding/copy_rows.h"

#include "cuda/op/primitive/map.cuh"

namespace cistern::op::gpu {
namespace {

// threadIdx.x runs over the words of a row, threadIdx.y over rows. A thread copies one word of
// kPerThread rows and issues all loads before the first store.
template <typename Word>
__global__ void __launch_bounds__(kBlockThreads)
    CopyRowsKernel(const Word* from, const uint32_t* from_rows, Word* to, const uint32_t* to_rows,
                   size_t words, size_t count) {
  const size_t first = size_t{blockIdx.x} * kPerThread * blockDim.y + threadIdx.y;
  size_t source[kPerThread], target[kPerThread];
#pragma unroll
  for (unsigned k = 0; k < kPerThread; ++k) {
    const size_t i = first + k * blockDim.y;
    if (i >= count) continue;
    source[k] = (from_rows == nullptr ? i : from_rows[i]) * words;
    target[k] = (to_rows == nullptr ? i : to_rows[i]) * words;
  }
  for (size_t w = threadIdx.x; w < words; w += blockDim.x) {
    Word held[kPerThread];
#pragma unroll
    for (unsigned k = 0; k < kPerThread; ++k) {
      if (first + k * blockDim.y < count) held[k] = from[source[k] + w];
    }
#pragma unroll
    for (unsigned k = 0; k < kPerThread; ++k) {
      if (first + k * blockDim.y < count) to[target[k] + w] = held[k];
    }
  }
}

template <typename Word>
void Copy(const void* from, const uint32_t* from_rows, void* to, const uint32_t* to_rows,
          size_t bytes, size_t count, Stream& stream) {
  const size_t words = bytes / sizeof(Word);
  const dim3 block = RowBlock(words, kWarp);
  Launch("CopyRows", CopyRowsKernel<Word>,
         dim3(static_cast<unsigned>(CeilDivide(count, kPerThread * block.y))), block, 0, stream,
         static_cast<const Word*>(from), from_rows, static_cast<Word*>(to), to_rows, words, count);
}

}  // namespace

void CopyRows(const void* from, const uint32_t* from_rows, void* to, const uint32_t* to_rows,
              size_t bytes, size_t count, Stream& stream) {
  if (bytes == 0) return;
  const size_t all = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to) | bytes;
  if (all % sizeof(float4) == 0) {
    Copy<float4>(from, from_rows, to, to_rows, bytes, count, stream);
  } else if (all % sizeof(float) == 0) {
    Copy<float>(from, from_rows, to, to_rows, bytes, count, stream);
  } else {
    Copy<uint8_t>(from, from_rows, to, to_rows, bytes, count, stream);
  }
}

}  // namespace cistern::op::gpu
