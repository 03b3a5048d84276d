// Floats as text, fast: what writing the text form of rows spends most of its time on.
//
// Schubfach (R. Giulietti, "The Schubfach way to render doubles", 2022) for 32 bits: the shortest
// decimal that reads back as the same float, and of those the nearest, from one table of 64-bit
// powers of ten and three multiplications. The bytes are those of std::to_chars, which it leaves
// the rare cases to.
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

}  // namespace cistern
