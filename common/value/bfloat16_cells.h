// Numbers of 16 bits in 4-byte cells (CellType::kBfloat16), and the rounding that makes floats such
// numbers.
//
// A float has 24 bits of precision, a bfloat16 has 8. A weight that moves by less than half of its
// last bit would never move if it were rounded to the nearest; rounded up with the probability of
// the part that is cut off, it moves by the right amount on average (Gupta et al., "Deep Learning
// with Limited Numerical Precision", ICML 2015). The draws are a pure function of table, key, pass
// and position, so a pass that is trained again after a crash gives the same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/base/half.h"
#include "common/base/host_device.h"
#include "common/base/philox.h"
#include "common/base/types.h"

namespace cistern {

// The nearest bfloat16, ties to even. A finite number stays finite.
inline HalfBits NearestBfloat16(float x) {
  const HalfBits bits = FloatToBfloat16(x);
  const bool overflows = (bits & 0x7FFFu) == 0x7F80u && std::isfinite(x);
  return static_cast<HalfBits>(overflows ? bits - 1 : bits);
}

// The numbers of a 16-bit field as floats: [count].
inline void LoadBfloat16(const float* cells, uint32_t count, float* out) {
  const char* bytes = reinterpret_cast<const char*>(cells);
  for (uint32_t i = 0; i < count; ++i) {
    HalfBits bits;
    std::memcpy(&bits, bytes + i * sizeof(bits), sizeof(bits));
    out[i] = Bfloat16ToFloat(bits);
  }
}
// The inverse, rounded to the nearest. Half of the last cell is zero if count is odd.
inline void StoreBfloat16(const float* numbers, uint32_t count, float* cells) {
  char* bytes = reinterpret_cast<char*>(cells);
  for (uint32_t i = 0; i < count; ++i) {
    const HalfBits bits = NearestBfloat16(numbers[i]);
    std::memcpy(bytes + i * sizeof(bits), &bits, sizeof(bits));
  }
  if (count % 2 != 0) std::memset(bytes + count * sizeof(HalfBits), 0, sizeof(HalfBits));
}

// Where a value has numbers that its table stores in 16 bits, and the draws that round them.
struct CellRounding {
  uint32_t first = 0, end = 0;  // cells of an unpacked value (ValueLayout::rounded_cells)
  uint64_t seed = 0;            // of the table
  uint64_t pass = 0;
};

// Rounds x to one of the two bfloat16 around it: away from zero if the lower half of x is at least
// 2^16 - draw. draw: 16 random bits. A bfloat16 stays as it is; a finite number stays finite.
CISTERN_HOST_DEVICE inline float RoundToBfloat16(float x, uint32_t draw) {
  constexpr uint32_t kUpper = 0xFFFF0000u, kExponent = 0x7F800000u;
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  if ((bits & kExponent) == kExponent) {  // keep a NaN one
    if ((bits & ~kUpper) != 0) bits |= 0x00400000u;
  } else if (((bits + draw) & kExponent) != kExponent) {
    bits += draw;
  }
  bits &= kUpper;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

// Rounds the cells of an unpacked value, in place. Several threads may share the work: each rounds
// the blocks of eight cells part, part + parts, ...
CISTERN_HOST_DEVICE inline void RoundCells(const CellRounding& rounding, Key key, float* value,
                                           uint32_t part = 0, uint32_t parts = 1) {
  constexpr uint64_t kRoundStream = 1;  // FillWeights has stream 0
  const uint32_t count = rounding.end - rounding.first;
  for (uint32_t i = 8 * part; i < count; i += 8 * parts) {
    const PhiloxBlock bits =
        Philox(rounding.seed, key, rounding.pass << 20 | uint64_t{i / 8} << 8 | kRoundStream);
    for (uint32_t j = i; j < count && j < i + 8; ++j) {
      const uint32_t word = bits.word[(j - i) / 2];
      float& cell = value[rounding.first + j];
      cell = RoundToBfloat16(cell, (j - i) % 2 == 0 ? word & 0xFFFFu : word >> 16);
    }
  }
}

}  // namespace cistern
