// Overflow-checked sums and products, for numbers from outside (headers, requests, file names). A
// count that wraps around would allocate less memory than is then written.
#pragma once

#include <cstdint>
#include <optional>

namespace cistern {

// CheckedAdd(a, b) is a + b, or nullopt if the sum does not fit in 64 bits.
inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// CheckedMul(a, b) is a * b, or nullopt if the product does not fit in 64 bits.
inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

}  // namespace cistern
