#include "common/base/float_reading.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace cistern {
namespace {

__extension__ using uint128_t = unsigned __int128;

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

bool IsDigit(char c) {
  return static_cast<unsigned char>(c - '0') < 10;
}

constexpr uint64_t kZeros = 0x3030303030303030;

uint64_t Word(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Marks the characters of `word` that are not digits by the high bit of their byte. Bytes after the
// first mark are unreliable.
uint64_t NoDigits(uint64_t word) {
  return ((word + 0x4646464646464646) | (word - kZeros)) & 0x8080808080808080;
}

// The number whose digits are the bytes of `word`, the first digit in the lowest byte. Combines
// digits into pairs, fours and eights.
uint64_t EightDigits(uint64_t word) {
  word = word * 10 + (word >> 8);
  constexpr uint64_t kMask = 0x000000FF000000FF;
  return ((word & kMask) * (100 + (uint64_t{1000000} << 32)) +
          (word >> 16 & kMask) * (1 + (uint64_t{10000} << 32))) >>
         32;
}

// Appends the leading digits of [at, end) to *number; returns where they end.
const char* AppendDigits(const char* at, const char* end, uint64_t* number) {
  // Eight bytes at a time; the number of digits among them is found without a loop.
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

// A parsed number: digits 10^exponent, and where its text ends (null: nothing was parsed).
struct Reading {
  const char* end = nullptr;
  uint64_t digits = 0;
  int32_t exponent = 0;
};

// "d.ddd": one digit before the point and 1 to 15 after it, the form of nearly all weights.
Reading ReadOneAndFraction(const char* at, const char* end) {
  const std::ptrdiff_t room = end - at - 2;
  if (room < 8 || !IsDigit(at[0]) || at[1] != '.') return {};
  const char* const fraction = at + 2;
  // 16 characters; if fewer are left, those, padded with zero bytes.
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

// Up to 17 digits, with or without a point.
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

// Extends `reading` by the exponent after the 'e', which must have at most two digits.
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

// The body of ReadFloat, inline so that the loop of ReadFloats contains it.
inline const char* ReadOne(const char* begin, const char* end, float* x) {
  if (begin == end) return nullptr;
  const uint32_t negative = *begin == '-' ? 1 : 0;  // branch-free: the sign is unpredictable
  const char* const first = begin + negative;
  Reading reading = ReadOneAndFraction(first, end);
  if (reading.end == nullptr) reading = ReadDigits(first, end);
  if (reading.end == nullptr) return nullptr;
  if (reading.end != end && *reading.end == 'e') reading = ReadExponent(reading, end);
  const auto [at, digits, exponent] = reading;
  if (at == nullptr) return nullptr;
  // A double that is off by at most two units in the last place ...
  if (digits >> 53 != 0 || exponent < kMinDoublePower || exponent > kMaxDoublePower) return nullptr;
  const double value =
      static_cast<double>(digits) * kDoublePowers[static_cast<size_t>(exponent - kMinDoublePower)];
  // ... rounds to the same float as the exact number, unless it is next to the midpoint between two
  // floats. (Holds far from the ends of a float's range: for 1e-30 to 1e38.)
  const uint64_t below_float = std::bit_cast<uint64_t>(value) & 0x1FFFFFFF;
  if (below_float - (0x10000000 - 4) <= 8) return nullptr;
  const auto magnitude = std::bit_cast<uint32_t>(static_cast<float>(value));
  *x = std::bit_cast<float>(magnitude | negative << 31);
  return at;
}

}  // namespace

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
