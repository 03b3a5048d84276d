#include "common/float_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace cistern {
namespace {

__extension__ using uint128_t = unsigned __int128;

// floor(log10(2^q)), floor(log10(3/4 2^q)) and floor(log2(10^e)) for all exponents of a float.
constexpr int32_t FloorLog10Pow2(int32_t q) {
  return (q * 1262611) >> 22;
}
constexpr int32_t FloorLog10ThreeQuartersPow2(int32_t q) {
  return (q * 1262611 - 524031) >> 22;
}
constexpr int32_t FloorLog2Pow10(int32_t e) {
  return (e * 1741647) >> 19;
}

constexpr int32_t kMinPower = -31, kMaxPower = 45;

// 10^e, rounded up to 64 significant bits: ceil(10^e 2^(63 - floor(log2(10^e)))).
constexpr uint64_t PowerOfTen(int32_t e) {
  // 10^|e| in 32-bit digits, the lowest first; 160 bits hold 10^45.
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
  return g + 1;  // never exact
}

constexpr auto kPowersOfTen = [] {
  std::array<uint64_t, kMaxPower - kMinPower + 1> powers{};
  for (int32_t e = kMinPower; e <= kMaxPower; ++e) {
    powers[static_cast<size_t>(e - kMinPower)] = PowerOfTen(e);
  }
  return powers;
}();

constexpr std::array<uint32_t, 10> kWholePowers = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

// 10^0 to 10^15.
constexpr auto kLongPowers = [] {
  std::array<uint64_t, 16> powers{1};
  for (size_t e = 1; e < powers.size(); ++e) powers[e] = powers[e - 1] * 10;
  return powers;
}();

// 10^-30 to 10^22, each the nearest double.
constexpr int32_t kMinDoublePower = -30, kMaxDoublePower = 22;
constexpr std::array<double, kMaxDoublePower - kMinDoublePower + 1> kDoublePowers = {
    1e-30, 1e-29, 1e-28, 1e-27, 1e-26, 1e-25, 1e-24, 1e-23, 1e-22, 1e-21, 1e-20,
    1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9,
    1e-8,  1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1e0,   1e1,   1e2,
    1e3,   1e4,   1e5,   1e6,   1e7,   1e8,   1e9,   1e10,  1e11,  1e12,  1e13,
    1e14,  1e15,  1e16,  1e17,  1e18,  1e19,  1e20,  1e21,  1e22};

// floor(g cp / 2^64), its last bit set where something is lost.
uint32_t RoundToOdd(uint64_t g, uint32_t cp) {
  const uint128_t product = uint128_t{g} * cp;
  const auto high = static_cast<uint32_t>(product >> 64);
  const auto low = static_cast<uint32_t>(product >> 32);
  return high | (low > 1 ? 1 : 0);
}

struct Decimal {
  uint32_t digits = 0;
  int32_t exponent = 0;  // digits 10^exponent
};

// bits: of a finite float above 0. Trailing zeros may be left.
Decimal ShortestDecimal(uint32_t bits) {
  const uint32_t fraction = bits & 0x7FFFFF, biased = bits >> 23;
  const uint32_t c = biased == 0 ? fraction : fraction | 0x800000;
  const int32_t q = static_cast<int32_t>(biased == 0 ? 1 : biased) - 150;
  // The float below is half as far away where c is a power of two.
  const bool near_below = fraction == 0 && biased > 1;
  const uint32_t odd = c & 1;
  const int32_t k = near_below ? FloorLog10ThreeQuartersPow2(q) : FloorLog10Pow2(q);
  const int32_t h = q + FloorLog2Pow10(-k) + 1;
  const uint64_t g = kPowersOfTen[static_cast<size_t>(-k - kMinPower)];
  const uint32_t lower = RoundToOdd(g, (4 * c - 2 + (near_below ? 1 : 0)) << h) + odd;
  const uint32_t middle = RoundToOdd(g, (4 * c) << h);
  const uint32_t upper = RoundToOdd(g, (4 * c + 2) << h) - odd;

  // Which of both it is follows no pattern, so nothing here is a branch.
  const uint32_t s = middle / 4, shorter = s / 10;
  const bool short_below = lower <= 40 * shorter, short_above = 40 * shorter + 40 <= upper;
  const bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
  const uint32_t half = 4 * s + 2;
  const bool nearer_above = (middle > half) | ((middle == half) & ((s & 1) != 0));
  const bool up = ((below != above) & above) | ((below == above) & nearer_above);
  const auto is_short = static_cast<uint32_t>((s >= 10) & (short_below != short_above));
  const uint32_t mask = 0 - is_short;
  return {((shorter + (short_above ? 1 : 0)) & mask) | ((s + (up ? 1 : 0)) & ~mask),
          k + static_cast<int32_t>(is_short)};
}

// The characters of a number of at most nine digits, in registers: bytes that were just stored one
// by one cannot be loaded again as a word without a stall.
class Digits {
 public:
  explicit Digits(uint32_t x) {
    // Of 32 - clz bits: 1233 / 4096 is log10(2), rounded up.
    const int32_t guess = ((32 - std::countl_zero(x)) * 1233) >> 12;
    num_ = guess + (x >= kWholePowers[static_cast<size_t>(guess)] ? 1 : 0);
    nine_ = num_ == 9 ? 1 : 0;
    first_ = static_cast<char>('0' + x / 100000000);
    // Both halves of the other eight digits, then both of those, and of those.
    const uint32_t eight = x % 100000000;
    uint64_t pack = (eight / 10000) | uint64_t{eight % 10000} << 32;
    const uint64_t hundreds = (pack * 10486 >> 20) & 0x0000007F0000007F;
    pack = hundreds | (pack - hundreds * 100) << 16;
    const uint64_t tens = (pack * 103 >> 10) & 0x000F000F000F000F;
    pack = tens | (pack - tens * 10) << 8;
    rest_ = (pack | 0x3030303030303030) >> (8 * (8 - num_ + nine_));
  }

  int32_t num() const { return num_; }
  // Writes them, and up to 8 bytes behind them that mean nothing.
  void Write(char* out) const {
    *out = first_;
    std::memcpy(out + nine_, &rest_, sizeof(rest_));
  }
  // The same without the first `skip` of them, 1 to num - 1.
  void WriteFrom(int32_t skip, char* out) const {
    const uint64_t rest = rest_ >> (8 * (skip - nine_));
    std::memcpy(out, &rest, sizeof(rest));
  }

 private:
  int32_t num_, nine_;
  char first_;     // of nine digits
  uint64_t rest_;  // the other eight, or fewer; the first in the lowest byte
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

bool IsDigit(char c) {
  return static_cast<unsigned char>(c - '0') < 10;
}

constexpr uint64_t kZeros = 0x3030303030303030;

uint64_t Word(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Of eight characters: the high bit of each that is no digit (and perhaps of some behind the first
// of those).
uint64_t NoDigits(uint64_t word) {
  return ((word + 0x4646464646464646) | (word - kZeros)) & 0x8080808080808080;
}

// The number whose digits, the first in the lowest byte, are the bytes of `word`: pairs, fours and
// eights are put together.
uint64_t EightDigits(uint64_t word) {
  word = word * 10 + (word >> 8);
  constexpr uint64_t kMask = 0x000000FF000000FF;
  return ((word & kMask) * (100 + (uint64_t{1000000} << 32)) +
          (word >> 16 & kMask) * (1 + (uint64_t{10000} << 32))) >>
         32;
}

// Appends the digits that [at, end) begins with to *number; returns where they end.
const char* AppendDigits(const char* at, const char* end, uint64_t* number) {
  // Eight bytes at a time: how many of them are digits, no loop asks.
  while (end - at >= 8) {
    const uint64_t word = Word(at), others = NoDigits(word);
    const auto num = static_cast<uint32_t>(std::countr_zero(others)) / 8;
    if (num == 0) return at;
    *number = *number * kWholePowers[num] + EightDigits((word - kZeros) << (8 * (8 - num)));
    at += num;
    if (others != 0) return at;
  }
  for (; at != end && IsDigit(*at); ++at) {
    *number = *number * 10 + static_cast<uint64_t>(*at - '0');
  }
  return at;
}

// What was read: digits 10^exponent, and where it ends; null: nothing was.
struct Reading {
  const char* end = nullptr;
  uint64_t digits = 0;
  int32_t exponent = 0;
};

// "d.ddd": one digit before the point and 1 to 15 behind it, as nearly all weights have.
Reading ReadOneAndFraction(const char* at, const char* end) {
  const std::ptrdiff_t room = end - at - 2;
  if (room < 8 || !IsDigit(at[0]) || at[1] != '.') return {};
  const char* const fraction = at + 2;
  // 16 characters; where fewer are there, those that are, before zeros.
  const uint64_t low = Word(fraction);
  const uint64_t high =
      room >= 16 ? Word(fraction + 8) : Word(end - 8) >> 1 >> (8 * (16 - room) - 1);
  const uint64_t low_others = NoDigits(low), high_others = NoDigits(high);
  const int32_t low_num = std::countr_zero(low_others) / 8;
  const int32_t high_num = std::countr_zero(high_others) / 8;
  const int32_t num = low_num + (low_others == 0 ? high_num : 0);
  if (num == 0 || num == 16) return {};
  const uint128_t digits = (uint128_t{high - kZeros} << 64 | (low - kZeros)) << (8 * (16 - num));
  const uint64_t before_point =
      static_cast<uint64_t>(at[0] - '0') * kLongPowers[static_cast<size_t>(num)];
  return {fraction + num,
          before_point + EightDigits(static_cast<uint64_t>(digits)) * 100000000 +
              EightDigits(static_cast<uint64_t>(digits >> 64)),
          -num};
}

// Up to 17 digits with a point anywhere, or none.
Reading ReadDigits(const char* at, const char* end) {
  Reading reading;
  const char* const first = at;
  at = AppendDigits(at, end, &reading.digits);
  int64_t count = at - first;
  if (at != end && *at == '.') {
    const char* const fraction = ++at;
    at = AppendDigits(at, end, &reading.digits);
    reading.exponent = static_cast<int32_t>(fraction - at);
    count += at - fraction;
  }
  if (count > 0 && count <= 17) reading.end = at;
  return reading;
}

// The same with what stands behind the 'e', which is to be a number of at most two digits.
Reading ReadExponent(Reading reading, const char* end) {
  const char* at = reading.end + 1;
  const bool below = at != end && *at == '-';
  if (at != end && (*at == '-' || *at == '+')) ++at;
  const char* const first = at;
  int32_t number = 0;
  for (; at != end && IsDigit(*at) && at - first < 3; ++at) number = number * 10 + (*at - '0');
  reading.exponent += below ? -number : number;
  reading.end = at == first || at - first > 2 ? nullptr : at;
  return reading;
}

// What ReadFloat does: here, to be part of the loop of ReadFloats.
inline const char* ReadOne(const char* begin, const char* end, float* x) {
  if (begin == end) return nullptr;
  const uint32_t negative = *begin == '-' ? 1 : 0;  // not a branch: nobody can predict it
  const char* const first = begin + negative;
  Reading reading = ReadOneAndFraction(first, end);
  if (reading.end == nullptr) reading = ReadDigits(first, end);
  if (reading.end == nullptr) return nullptr;
  if (reading.end != end && *reading.end == 'e') reading = ReadExponent(reading, end);
  const auto [at, digits, exponent] = reading;
  if (at == nullptr) return nullptr;
  // A double that is at most two of its last bits off ...
  if (digits >> 53 != 0 || exponent < kMinDoublePower || exponent > kMaxDoublePower) return nullptr;
  const double value =
      static_cast<double>(digits) * kDoublePowers[static_cast<size_t>(exponent - kMinDoublePower)];
  // ... rounds to the float that the exact number does unless it lies next to the middle between
  // two floats. (Far from the ends of a float's range: 1e-30 to 1e38.)
  const uint64_t below_float = std::bit_cast<uint64_t>(value) & 0x1FFFFFFF;
  if (below_float - (0x10000000 - 4) <= 8) return nullptr;
  const auto magnitude = std::bit_cast<uint32_t>(static_cast<float>(value));
  *x = std::bit_cast<float>(magnitude | negative << 31);
  return at;
}

}  // namespace

char* WriteFloat(float x, char* begin) {
  const auto bits = std::bit_cast<uint32_t>(x);
  char* out = begin;
  *out = '-';
  out += bits >> 31;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x7F800000) return std::to_chars(begin, begin + kFloatTextBytes, x).ptr;
  if (magnitude == 0) {
    *out++ = '0';
    return out;
  }
  Decimal decimal = ShortestDecimal(magnitude);
  while (decimal.digits % 10 == 0) {
    decimal.digits /= 10;
    ++decimal.exponent;
  }
  const Digits digits(decimal.digits);
  const int32_t n = digits.num(), point = n + decimal.exponent;  // 0.ddd 10^point
  // The shorter of both forms, and without an exponent where they are alike: as std::to_chars.
  const int32_t scientific = n + (n > 1 ? 1 : 0) + 4;
  if (point <= 0) {
    if (2 - point + n > scientific) return WriteScientific(digits, point - 1, out);
    std::memcpy(out, "0.0000", 6);  // no more zeros: scientific would be shorter
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
  // A whole number: its own digits, which may be more than those that tell it from others.
  const auto whole = static_cast<uint64_t>(std::bit_cast<float>(magnitude));
  return std::to_chars(out, begin + kFloatTextBytes, whole).ptr;
}

const char* ReadFloat(const char* begin, const char* end, float* x) {
  return ReadOne(begin, end, x);
}

size_t ReadFloats(const char** at, const char* end, float* out, size_t num) {
  const char* next = *at;
  size_t read = 0;
  for (; read < num; ++read) {
    const char* const after = ReadOne(next, end, out + read);
    if (after == nullptr) break;
    if (after == end) {
      *at = end;
      return read + 1;
    }
    if (*after != ' ') break;
    next = after + 1;
  }
  *at = next;
  return read;
}

}  // namespace cistern
