// Memory traffic: b (8 + s) bytes for elements of s bytes, in sectors of 32: as many sectors as
// samples, if a sample has more than 8 places.
#include "cuda/op/embedding/sequence_lengths.h"

#include "cuda/op/primitive/map.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void LengthsOf(const uint32_t* begins, size_t places, size_t count, T* y, size_t stride, size_t b,
               Stream& stream) {
  MapRows("SequenceLengths", b, 1, Write::kOverwrite, y, stride, stream,
          [=] __device__(size_t s, size_t) {
            const uint32_t* begin = begins + s * places;
            return static_cast<float>(begin[count] - begin[0]);
          });
}

}  // namespace

void SequenceLengths(const uint32_t* offsets, size_t places, size_t first, size_t count, Values y,
                     size_t stride, size_t b, Stream& stream) {
  if (b == 0) return;
  ForType(y.type, [&]<typename T>() {
    LengthsOf(offsets + first, places, count, As<T>(y), stride, b, stream);
  });
}

}  // namespace cistern::op::gpu
