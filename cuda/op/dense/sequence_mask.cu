// Memory traffic: s b m n bytes for elements of s bytes. The lengths hit the cache.
#include "cuda/op/dense/sequence_mask.h"

#include "cuda/op/primitive/map.cuh"

namespace cistern::op::gpu {
namespace {

template <typename T>
void SequenceMaskOf(const T* from, const T* to, T* y, size_t b, size_t m, size_t n,
                    Stream& stream) {
  MapRows("SequenceMask", b * m, n, Write::kOverwrite, y, n, stream,
          [=] __device__(size_t r, size_t c) {
            const bool is_kept = static_cast<float>(r % m + 1) <= float{from[r / m]} &&
                                 static_cast<float>(c + 1) <= float{to[r / m]};
            return is_kept ? 1.0f : 0.0f;
          });
}

}  // namespace

void SequenceMask(ConstValues from, ConstValues to, Values y, size_t b, size_t m, size_t n,
                  Stream& stream) {
  if (b == 0 || m == 0 || n == 0) return;
  ForType(y.type,
          [&]<typename T>() { SequenceMaskOf(As<T>(from), As<T>(to), As<T>(y), b, m, n, stream); });
}

}  // namespace cistern::op::gpu
