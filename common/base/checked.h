// Sums and products of numbers that the outside world names (headers, requests, file names), which
// must not wrap around: a count that wraps asks for less memory than it is then written to.
#pragma once

#include <cstdint>
#include <optional>

namespace cistern {

// CheckedAdd(a, b) is a + b, or nothing where that does not fit in 64 bits.
inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// CheckedMul(a, b) is a * b, or nothing where that does not fit in 64 bits.
inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace cistern
