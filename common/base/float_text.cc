#include "common/base/float_text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace cistern {
namespace {

__extension__ using uint128_t = unsigned __int128;

// floor(log10(2^q)) or floor(log10(3/4 2^q)), and floor(log2(10^e)), exact for all exponents of a
// float.
constexpr int32_t FloorLog10Pow2(int32_t q, uint32_t three_quarters) {
  return (q * 1262611 - (three_quarters != 0 ? 524031 : 0)) >> 22;
}
constexpr int32_t FloorLog2Pow10(int32_t e) {
  return (e * 1741647) >> 19;
}

constexpr int32_t kMinPower = -31, kMaxPower = 45;

// 10^e, rounded up to 64 significant bits: ceil(10^e 2^(63 - floor(log2(10^e)))).
constexpr uint64_t PowerOfTen(int32_t e) {
  // 10^|e| in 32-bit digits, lowest first; 160 bits hold 10^45.
  std::array<uint32_t, 10> power{1};
  for (int32_t i = 0; i < (e < 0 ? -e : e); ++i) {
    uint64_t carry = 0;
    for (uint32_t& digit : power) {
      carry += uint64_t{digit} * 10;
      digit = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  const auto bit = [&](int32_t i) {
    return i >= 0 && ((power[static_cast<size_t>(i) / 32] >> (i % 32)) & 1) != 0;
  };
  if (e >= 0) {
    const int32_t top = FloorLog2Pow10(e);
    uint64_t g = 0;
    for (int32_t i = 0; i < 64; ++i) g = g << 1 | (bit(top - i) ? 1 : 0);
    bool rest = false;
    for (int32_t i = 0; i < top - 63; ++i) rest = rest || bit(i);
    return g + (rest ? 1 : 0);
  }
  // Long division of 2^shift by 10^|e|, bit by bit; 10^31 has 103 bits.
  const uint128_t divisor = (uint128_t{power[3]} << 96) | (uint128_t{power[2]} << 64) |
                            (uint128_t{power[1]} << 32) | power[0];
  const int32_t shift = 63 - FloorLog2Pow10(e);
  uint128_t rest = 0;
  uint64_t g = 0;
  for (int32_t i = shift; i >= 0; --i) {
    rest = rest << 1 | (i == shift ? 1 : 0);
    g <<= 1;
    if (rest >= divisor) {
      rest -= divisor;
      g |= 1;
    }
  }
  return g + 1;  // the quotient is never exact
}

constexpr auto kPowersOfTen = [] {
  std::array<uint64_t, kMaxPower - kMinPower + 1> powers{};
  for (int32_t e = kMinPower; e <= kMaxPower; ++e) {
    powers[static_cast<size_t>(e - kMinPower)] = PowerOfTen(e);
  }
  return powers;
}();

// Up to kLanes numbers as a structure of arrays, so that compilers vectorize the branch-free loops.
template <size_t kLanes>
struct Decimals {
  template <typename T>
  using Each = std::array<T, kLanes>;

  alignas(32) Each<uint32_t> digits;
  alignas(32) Each<int32_t> exponent;  // digits 10^exponent
  // The characters of `digits`, kept in registers: loading a word right after storing its bytes one
  // by one would stall.
  alignas(32) Each<uint32_t> num;             // 1 to 9
  alignas(32) Each<uint32_t> first;           // the first of nine digits
  alignas(32) Each<uint32_t> upper4, lower4;  // the other eight, the first in the lowest byte
};

// floor(g cp / 2^64), with the last bit set if the result is inexact. low, high: the halves of g.
uint32_t RoundToOdd(uint32_t low, uint32_t high, uint32_t cp) {
  const uint64_t carry = uint64_t{low} * cp >> 32, product = uint64_t{high} * cp + carry;
  return static_cast<uint32_t>(product >> 32) | (static_cast<uint32_t>(product) > 1 ? 1 : 0);
}

// Finds the shortest decimals of the floats with the given bits, which must be finite and not
// negative; the results for others are meaningless. Trailing zeros may remain.
template <size_t kLanes>
void FindShortest(const std::array<uint32_t, kLanes>& bits, Decimals<kLanes>* out) {
  // For a float c 2^q: the power of ten k and the shift of 4 c.
  alignas(32) std::array<uint32_t, kLanes> c, near_below, shift, low, high;
  alignas(32) std::array<int32_t, kLanes> k;
  for (size_t i = 0; i < kLanes; ++i) {
    const uint32_t fraction = bits[i] & 0x7FFFFF, biased = bits[i] >> 23;
    const int32_t q = static_cast<int32_t>(biased == 0 ? 1 : biased) - 150;
    c[i] = fraction | (biased == 0 ? 0 : 0x800000);
    // The float below is half as far away where c is a power of two.
    near_below[i] = ((fraction == 0) & (biased > 1)) ? 1 : 0;
    k[i] = FloorLog10Pow2(q, near_below[i]);
    shift[i] = static_cast<uint32_t>(q + FloorLog2Pow10(-k[i]) + 1);
  }
  for (size_t i = 0; i < kLanes; ++i) {
    const uint64_t g = kPowersOfTen[static_cast<size_t>(-k[i] - kMinPower)];
    low[i] = static_cast<uint32_t>(g);
    high[i] = static_cast<uint32_t>(g >> 32);
  }
  for (size_t i = 0; i < kLanes; ++i) {
    const uint32_t odd = c[i] & 1;
    const uint32_t lower =
        RoundToOdd(low[i], high[i], (4 * c[i] - 2 + near_below[i]) << shift[i]) + odd;
    const uint32_t middle = RoundToOdd(low[i], high[i], (4 * c[i]) << shift[i]);
    const uint32_t upper = RoundToOdd(low[i], high[i], (4 * c[i] + 2) << shift[i]) - odd;

    const uint32_t s = middle / 4, shorter = s / 10, half = 4 * s + 2;
    const uint32_t short_below = lower <= 40 * shorter ? 1 : 0;
    const uint32_t short_above = 40 * shorter + 40 <= upper ? 1 : 0;
    const uint32_t below = lower <= 4 * s ? 1 : 0, above = 4 * s + 4 <= upper ? 1 : 0;
    const uint32_t nearer_above =
        (middle > half ? 1u : 0u) | ((middle == half ? 1u : 0u) & (s & 1));
    const uint32_t one_fits = below ^ above;
    const uint32_t up = (one_fits & above) | ((one_fits ^ 1) & nearer_above);
    const uint32_t is_short = (s >= 10 ? 1u : 0u) & (short_below ^ short_above);
    const uint32_t mask = 0u - is_short;
    out->digits[i] = ((shorter + short_above) & mask) | ((s + up) & ~mask);
    out->exponent[i] = k[i] + static_cast<int32_t>(is_short);
  }
}

// The four digits of x as bytes, the first in the lowest byte.
uint32_t FourBytes(uint32_t x) {
  const uint32_t hundreds = x * 10486 >> 20, pairs = hundreds | (x - hundreds * 100) << 16;
  const uint32_t tens = (pairs * 103 >> 10) & 0x000F000F;
  return tens | (pairs - tens * 10) << 8;
}

template <size_t kLanes>
void FindCharacters(Decimals<kLanes>* out) {
  for (size_t i = 0; i < kLanes; ++i) {
    const uint32_t x = out->digits[i];
    uint32_t num = 1;
    for (uint32_t power = 10; power <= 100000000; power *= 10) num += x >= power ? 1 : 0;
    const uint32_t first = x / 100000000, eight = x - first * 100000000;
    const uint32_t four = eight / 10000;
    out->num[i] = num;
    out->first[i] = first;
    out->upper4[i] = FourBytes(four);
    out->lower4[i] = FourBytes(eight - four * 10000);
  }
}

// The characters of one number of a Decimals.
class Digits {
 public:
  template <size_t kLanes>
  Digits(const Decimals<kLanes>& decimals, size_t i)
      : num_(static_cast<int32_t>(decimals.num[i])),
        nine_(num_ == 9 ? 1 : 0),
        first_(static_cast<char>('0' + decimals.first[i])),
        rest_((decimals.upper4[i] | uint64_t{decimals.lower4[i]} << 32 | 0x3030303030303030) >>
              (8 * (8 - num_ + nine_))) {}

  int32_t num() const { return num_; }
  // Writes the characters, and up to 8 meaningless bytes after them.
  void Write(char* out) const {
    *out = first_;
    std::memcpy(out + nine_, &rest_, sizeof(rest_));
  }
  // The same without the first `skip` characters, 1 to num - 1.
  void WriteFrom(int32_t skip, char* out) const {
    const uint64_t rest = rest_ >> (8 * (skip - nine_));
    std::memcpy(out, &rest, sizeof(rest));
  }

 private:
  int32_t num_, nine_;
  char first_;     // the first of nine digits
  uint64_t rest_;  // the other eight or fewer, the first in the lowest byte
};

// d.ddde-05.
char* WriteScientific(const Digits& digits, int32_t exponent, char* out) {
  digits.Write(out);
  if (digits.num() > 1) {
    digits.WriteFrom(1, out + 2);
    out[1] = '.';
    out += digits.num();
  }
  *++out = 'e';
  *++out = exponent < 0 ? '-' : '+';
  const int32_t distance = exponent < 0 ? -exponent : exponent;
  *++out = static_cast<char>('0' + distance / 10);
  *++out = static_cast<char>('0' + distance % 10);
  return out + 1;
}

// Writes number i of `decimals`. bits: that float's bits.
template <size_t kLanes>
char* WriteOne(uint32_t bits, const Decimals<kLanes>& decimals, size_t i, char* const begin) {
  char* out = begin;
  *out = '-';
  out += bits >> 31;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  const float x = std::bit_cast<float>(bits);
  if (magnitude >= 0x7F800000) return std::to_chars(begin, begin + kFloatTextBytes, x).ptr;
  if (magnitude == 0) {
    *out++ = '0';
    return out;
  }
  const Digits digits(decimals, i);
  const int32_t n = digits.num(), point = n + decimals.exponent[i];  // 0.ddd 10^point
  // The shorter of both forms, and the one without an exponent on a tie, as std::to_chars does.
  const int32_t scientific = n + (n > 1 ? 1 : 0) + 4;
  if (point <= 0) {
    if (2 - point + n > scientific) return WriteScientific(digits, point - 1, out);
    std::memcpy(out, "0.0000", 6);  // never more zeros: scientific would be shorter
    out += 2 - point;
    digits.Write(out);
    return out + n;
  }
  if (point < n) {
    digits.Write(out);
    digits.WriteFrom(point, out + point + 1);
    out[point] = '.';
    return out + n + 1;
  }
  if (point > scientific) return WriteScientific(digits, point - 1, out);
  // A whole number is written with all its digits, which may be more than the shortest form has.
  const auto whole = static_cast<uint64_t>(std::bit_cast<float>(magnitude));
  return std::to_chars(out, begin + kFloatTextBytes, whole).ptr;
}

// Fills all arrays of `decimals` for kLanes numbers.
template <size_t kLanes>
void FindDecimals(const float* x, Decimals<kLanes>* decimals) {
  alignas(32) std::array<uint32_t, kLanes> bits;
  for (size_t i = 0; i < kLanes; ++i) bits[i] = std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFF;
  FindShortest(bits, decimals);
  for (size_t i = 0; i < kLanes; ++i) {
    while (decimals->digits[i] % 10 == 0 && decimals->digits[i] != 0) {
      decimals->digits[i] /= 10;
      ++decimals->exponent[i];
    }
  }
  FindCharacters(decimals);
}

// Writes the first `num` of kLanes numbers, each preceded by a space.
template <size_t kLanes>
char* WriteSome(const float* x, size_t num, char* out) {
  Decimals<kLanes> decimals;
  FindDecimals(x, &decimals);
  for (size_t i = 0; i < num; ++i) {
    *out = ' ';
    out = WriteOne(std::bit_cast<uint32_t>(x[i]), decimals, i, out + 1);
  }
  return out;
}

}  // namespace

char* WriteFloat(float x, char* begin) {
  Decimals<1> decimals;
  FindDecimals(&x, &decimals);
  return WriteOne(std::bit_cast<uint32_t>(x), decimals, 0, begin);
}

char* WriteFloats(const float* x, size_t num, char* out) {
  constexpr size_t kLanes = 16;
  for (; num >= kLanes; num -= kLanes, x += kLanes) out = WriteSome<kLanes>(x, kLanes, out);
  if (num <= 2) {
    for (; num > 0; --num, ++x) out = WriteSome<1>(x, 1, out);
    return out;
  }
  std::array<float, kLanes> rest{};
  std::copy_n(x, num, rest.begin());
  return WriteSome<kLanes>(rest.data(), num, out);
}

}  // namespace cistern
