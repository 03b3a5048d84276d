#include "cuda/op/embedding/sequence_lengths.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // sequence_lengths.cu
decltype(op::SequenceLengths) SequenceLengths;
}  // namespace gpu

void SequenceLengths(const uint32_t* offsets, size_t places, size_t first, size_t count, Values y,
                     size_t stride, size_t b, Stream& stream) {
  CISTERN_RUN_ON_GPU(SequenceLengths, offsets, places, first, count, y, stride, b);
  ForType(y.type, [&]<typename T>() {
    T* const lengths = As<T>(y);
    for (size_t s = 0; s < b; ++s) {
      const uint32_t* begin = offsets + s * places + first;
      lengths[s * stride] = static_cast<float>(begin[count] - begin[0]);
    }
  });
}

}  // namespace cistern::op
