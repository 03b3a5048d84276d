// Deterministic sums over ranks: parts are added in rank order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "common/base/half.h"

namespace cistern::group {

// How to sum an element type: accumulate in a wider type, round once at the end.
struct FloatSum {
  using Element = float;
  using Sum = double;
  static Sum Widen(Element x) { return x; }
  static Element Round(Sum x) { return static_cast<Element>(x); }
};
struct HalfSum {
  using Element = HalfBits;
  using Sum = float;
  static Sum Widen(Element x) { return HalfToFloat(x); }
  static Element Round(Sum x) { return FloatToHalf(x); }
};
struct Bfloat16Sum {
  using Element = HalfBits;
  using Sum = float;
  static Sum Widen(Element x) { return Bfloat16ToFloat(x); }
  static Element Round(Sum x) { return FloatToBfloat16(x); }
};
struct DoubleSum {
  using Element = double;
  using Sum = double;
  static Sum Widen(Element x) { return x; }
  static Element Round(Sum x) { return x; }
};
struct Int64Sum {  // unsigned, because signed overflow is undefined
  using Element = uint64_t;
  using Sum = uint64_t;
  static Sum Widen(Element x) { return x; }
  static Element Round(Sum x) { return x; }
};

// out[i] = parts[0][i] + parts[1][i] + ... `out` may be one of the parts.
template <typename Kind>
void SumInRankOrder(absl::Span<const void* const> parts, size_t count, void* out) {
  using Element = typename Kind::Element;
  constexpr size_t kBlock = 512;  // the sums of a block fit into the L1 cache
  typename Kind::Sum sums[kBlock];
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    const auto* first = static_cast<const Element*>(parts[0]) + begin;
    for (size_t i = 0; i < n; ++i) sums[i] = Kind::Widen(first[i]);
    for (size_t r = 1; r < parts.size(); ++r) {
      const auto* part = static_cast<const Element*>(parts[r]) + begin;
      for (size_t i = 0; i < n; ++i) sums[i] += Kind::Widen(part[i]);
    }
    auto* to = static_cast<Element*>(out) + begin;
    for (size_t i = 0; i < n; ++i) to[i] = Kind::Round(sums[i]);
  }
}

}  // namespace cistern::group
