// Floats as text, fast: what the text form of rows spends most of its time on.
//
// Writing is Schubfach (R. Giulietti, "The Schubfach way to render doubles", 2022) for 32 bits: the
// shortest decimal that reads back as the same float, and of those the nearest, from one table of
// 64-bit powers of ten and three multiplications. Reading goes through a double and
// checks that its error cannot show, after Clinger ("How to read floating point numbers
// accurately", 1990). Both give the bytes and bits of std::to_chars and std::from_chars, which they
// leave the rare cases to.
//
// Threads: pure functions.
#pragma once

#include <cstddef>

namespace cistern {

// Room for a float: the longest has 15 characters, -1.17549435e-38, and a few bytes behind its end
// are written too.
inline constexpr size_t kFloatTextBytes = 24;

// Writes `x` as std::to_chars does and returns the end. begin: of kFloatTextBytes.
char* WriteFloat(float x, char* begin);

// Writes `num` numbers so, each behind a blank, and returns the end: twice as fast, because most of
// the work is done for many at a time. out: of (1 + kFloatTextBytes) for each.
char* WriteFloats(const float* x, size_t num, char* out);

// Reads the number at the beginning of [begin, end) as std::from_chars does and returns its end.
// Null: it is not an ordinary number, and *x is as it was; a slower reader says what it is.
const char* ReadFloat(const char* begin, const char* end, float* x);

// Reads up to `num` numbers, each up to the blank or the end behind it, into out[], as long as they
// are ordinary ones with one blank between them; returns how many. *at: of the first, and then
// behind the blank of the last.
size_t ReadFloats(const char** at, const char* end, float* out, size_t num);

}  // namespace cistern
