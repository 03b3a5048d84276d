#include "cuda/op/dense/dropout.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <cstring>

#include "common/base/check.h"
#include "common/base/philox.h"
#include "cuda/op/dense/dropout_cpu.h"
#include "cuda/op/primitive/cpu.h"
#include "cuda/op/primitive/element.h"

namespace cistern::op {

namespace gpu {  // dropout.cu
decltype(op::Dropout) Dropout;
decltype(op::DropoutBackward) DropoutBackward;
}  // namespace gpu

namespace {

constexpr size_t kBlockWords = 8;   // half-words of a Philox block
constexpr size_t kGroupBlocks = 4;  // blocks computed together

#ifdef __AVX2__

// Philox of the four counters counter .. counter + 3, one counter per 64-bit lane. The low half of
// a lane is the word; the high half is ignored, as in _mm256_mul_epu32.
void DrawGroup(uint64_t seed, uint64_t counter, uint64_t stream, uint16_t* half) {
  // Lanes hold counters 0, 2, 1, 3 so that unpacking at the end leaves the blocks in order.
  const __m256i counters = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(counter)),
                                            _mm256_setr_epi64x(0, 2, 1, 3));
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
  __m256i x0 = counters, x1 = _mm256_srli_epi64(counters, 32);
  __m256i x2 = _mm256_set1_epi64x(static_cast<int64_t>(stream & 0xFFFFFFFFu));
  __m256i x3 = _mm256_set1_epi64x(static_cast<int64_t>(stream >> 32));
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m256i p0 = _mm256_mul_epu32(x0, m0), p1 = _mm256_mul_epu32(x2, m1);
    const __m256i k0 = _mm256_set1_epi64x(key0), k1 = _mm256_set1_epi64x(key1);
    x0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), x1), k0);
    x1 = p1;
    x2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), x3), k1);
    x3 = p0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const __m256i low_half = _mm256_set1_epi64x(0xFFFFFFFF);
  const __m256i a = _mm256_or_si256(_mm256_and_si256(x0, low_half), _mm256_slli_epi64(x1, 32));
  const __m256i b = _mm256_or_si256(_mm256_and_si256(x2, low_half), _mm256_slli_epi64(x3, 32));
  auto* out = reinterpret_cast<__m256i*>(half);
  _mm256_storeu_si256(out, _mm256_unpacklo_epi64(a, b));
  _mm256_storeu_si256(out + 1, _mm256_unpackhi_epi64(a, b));
}

#else

void DrawGroup(uint64_t seed, uint64_t counter, uint64_t stream, uint16_t* half) {
  for (size_t i = 0; i < kGroupBlocks; ++i) {
    const PhiloxBlock block = Philox(seed, counter + i, stream);
    std::memcpy(half + i * kBlockWords, block.word, sizeof(block.word));
  }
}

#endif

}  // namespace

void DrawHalfWords(const DropoutDraw& draw, size_t n, size_t row, size_t first, size_t width,
                   uint16_t* half) {
  const uint64_t counter = (draw.first_row + row) * CeilDiv(n, kBlockWords) + first / kBlockWords;
  const size_t blocks = CeilDiv(width, kBlockWords);
  for (size_t i = 0; i < blocks; i += kGroupBlocks) {
    DrawGroup(draw.seed, counter + i, draw.sequence, half + i * kBlockWords);
  }
}

namespace {

template <typename T>
void DropoutOf(const T* x, const DropoutDraw& draw, T* y, uint8_t* mask, size_t b, size_t n) {
  const int32_t below = KeepBelow(draw.rate);
  const float scale = KeepScale(draw.rate);
  ForPieces(b, RowGrain(n), 4 * b * n, [=](size_t begin, size_t end) {
    uint16_t half[kDropoutChunk];
    for (size_t r = begin; r < end; ++r) {
      for (size_t first = 0; first < n; first += kDropoutChunk) {
        const size_t width = std::min(kDropoutChunk, n - first);
        DrawHalfWords(draw, n, r, first, width, half);
        const T* in = x + r * n + first;
        T* out = y + r * n + first;
        uint8_t* kept = mask + r * n + first;
#pragma omp simd
        for (size_t c = 0; c < width; ++c) {
          kept[c] = half[c] < below;
          out[c] = in[c] * KeepFactor(half[c] < below, scale);
        }
      }
    }
  });
}

template <typename T>
void DropoutBackwardOf(const T* dy, const uint8_t* mask, float scale, Write write, T* dx,
                       size_t count) {
  ForPieces(count, kElementGrain, 3 * count, [=](size_t begin, size_t end) {
    if (write == Write::kOverwrite) {
#pragma omp simd
      for (size_t i = begin; i < end; ++i) dx[i] = dy[i] * KeepFactor(mask[i] != 0, scale);
    } else {
#pragma omp simd
      for (size_t i = begin; i < end; ++i) dx[i] += dy[i] * KeepFactor(mask[i] != 0, scale);
    }
  });
}

}  // namespace

void Dropout(ConstValues x, const DropoutDraw& draw, Values y, uint8_t* mask, size_t b, size_t n,
             Stream& stream) {
  CISTERN_RUN_ON_GPU(Dropout, x, draw, y, mask, b, n);
  CISTERN_CHECK(draw.rate >= 0.0f && draw.rate < 1.0f);
  ForType(x.type, [&]<typename T>() { DropoutOf(As<T>(x), draw, As<T>(y), mask, b, n); });
}

void DropoutBackward(ConstValues dy, const uint8_t* mask, float rate, Write write, Values dx,
                     size_t b, size_t n, Stream& stream) {
  CISTERN_RUN_ON_GPU(DropoutBackward, dy, mask, rate, write, dx, b, n);
  ForType(dy.type, [&]<typename T>() {
    DropoutBackwardOf(As<T>(dy), mask, KeepScale(rate), write, As<T>(dx), b * n);
  });
}

}  // namespace cistern::op
