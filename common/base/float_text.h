// Fast formatting of floats: the hot spot of writing rows in text form.
//
// Schubfach (R. Giulietti, "The Schubfach way to render doubles", 2022) for 32 bits: finds the
// shortest decimal that reads back as the same float, and the nearest one among those, with one
// table of 64-bit powers of ten and three multiplications. The output equals that of std::to_chars,
// which handles the rare remaining cases.
//
// Threads: pure functions.
#pragma once

#include <cstddef>

namespace cistern {

// Buffer size for one float: the longest has 15 characters (-1.17549435e-38), and the writer may
// touch a few bytes past the end of the text.
inline constexpr size_t kFloatTextBytes = 24;

// Writes `x` as std::to_chars does and returns the end. begin: [kFloatTextBytes].
char* WriteFloat(float x, char* begin);

// Writes `num` numbers in the same form, each preceded by a space, and returns the end. Twice as
// fast as WriteFloat, because most of the work is vectorized. out: [num * (1 + kFloatTextBytes)].
char* WriteFloats(const float* x, size_t num, char* out);

}  // namespace cistern
