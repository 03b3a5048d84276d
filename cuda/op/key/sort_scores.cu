// Memory traffic per score: 4 sort passes of 8 bytes, 4 to count digits, 8 if the result must be
// copied back.
#include "cuda/op/key/sort_scores.h"

#include "cuda/core/memory.h"
#include "cuda/op/primitive/cub.cuh"

namespace cistern::op::gpu {
namespace {

constexpr char kSortScores[] = "SortScores";

// The bit patterns of nonnegative floats have the order of the floats.
using Bits = cub::DoubleBuffer<uint32_t>;

auto SortBits(Bits& bits, size_t count) {
  return [&bits, count](void* temporary, size_t& bytes, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortKeys(temporary, bytes, bits, static_cast<uint64_t>(count), 0,
                                          32, stream);
  };
}

struct SortScoresScratch {
  SortScoresScratch(size_t count, void* scratch, Stream& stream) {
    Bits none;
    temporary_bytes = CubBytes(kSortScores, stream, SortBits(none, count));
    ScratchParts parts(scratch);
    other = parts.Take<uint32_t>(count);
    temporary = parts.Take<char>(temporary_bytes);
    bytes = parts.bytes();
  }

  uint32_t* other;
  void* temporary;
  size_t temporary_bytes, bytes;
};

}  // namespace

void SortScores(float* x, size_t count, void* scratch, Stream& stream) {
  if (count == 0) return;
  const SortScoresScratch parts(count, scratch, stream);
  auto* mine = reinterpret_cast<uint32_t*>(x);
  Bits bits(mine, parts.other);
  RunCub(kSortScores, parts.temporary, parts.temporary_bytes, stream, SortBits(bits, count));
  if (bits.Current() != mine) CopyOnDevice(bits.Current(), x, count * sizeof(float), stream);
}

size_t SortScoresScratchBytes(size_t count, Stream& stream) {
  return SortScoresScratch(count, nullptr, stream).bytes;
}

}  // namespace cistern::op::gpu
