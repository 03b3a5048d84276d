// Conversions between float and the 16-bit formats IEEE half and bfloat16, rounded to nearest, ties
// to even. A bfloat16 is the upper half of a float: the same range, with 8 bits of precision.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/base/host_device.h"

namespace cistern {

using HalfBits = uint16_t;

CISTERN_HOST_DEVICE inline float HalfToFloat(HalfBits half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t bits = static_cast<uint32_t>(half & 0x7FFFu) << 13;
  float value;
  memcpy(&value, &bits, sizeof(value));
  value *= 0x1p112f;  // the difference of the exponent biases; also correct for subnormals
  memcpy(&bits, &value, sizeof(bits));
  if ((half & 0x7C00u) == 0x7C00u)
    bits = 0x7F800000u | (static_cast<uint32_t>(half & 0x3FFu) << 13);
  bits |= sign;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

CISTERN_HOST_DEVICE inline HalfBits FloatToHalf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = (bits >> 16) & 0x8000u;
  bits &= 0x7FFFFFFFu;
  uint32_t half;
  if (bits >= 0x47800000u) {  // 65536 and above, infinity and NaN
    half = bits > 0x7F800000u ? 0x7E00u : 0x7C00u;
  } else if (bits < 0x38800000u) {  // a subnormal half: the sum below has the ulp of a half
    float shifted;
    memcpy(&shifted, &bits, sizeof(shifted));
    shifted += 0.5f;
    memcpy(&bits, &shifted, sizeof(bits));
    half = bits - 0x3F000000u;
  } else {
    half = (bits - 0x38000000u + 0xFFFu + ((bits >> 13) & 1u)) >> 13;
  }
  return static_cast<HalfBits>(half | sign);
}

CISTERN_HOST_DEVICE inline float Bfloat16ToFloat(HalfBits half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

CISTERN_HOST_DEVICE inline HalfBits FloatToBfloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<HalfBits>(0x7FC0u);
  return static_cast<HalfBits>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace cistern
