#include "cuda/op/dense/sequence_mask.h"

#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // sequence_mask.cu
decltype(op::SequenceMask) SequenceMask;
}  // namespace gpu

namespace {

template <typename T>
void SequenceMaskOf(const T* from, const T* to, T* y, size_t b, size_t m, size_t n) {
  const size_t rows = b * m;
  ForPieces(rows, RowGrain(n), rows * n, [=](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      const bool is_query = static_cast<float>(r % m + 1) <= float{from[r / m]};
      const float length = is_query ? float{to[r / m]} : 0.0f;
      for (size_t j = 0; j < n; ++j) {
        y[r * n + j] = static_cast<float>(j + 1) <= length ? 1.0f : 0.0f;
      }
    }
  });
}

}  // namespace

void SequenceMask(ConstValues from, ConstValues to, Values y, size_t b, size_t m, size_t n,
                  Stream& stream) {
  CISTERN_RUN_ON_GPU(SequenceMask, from, to, y, b, m, n);
  ForType(y.type, [&]<typename T>() { SequenceMaskOf(As<T>(from), As<T>(to), As<T>(y), b, m, n); });
}

}  // namespace cistern::op
