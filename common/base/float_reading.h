// Fast parsing of floats: the hot spot of reading rows in text form.
//
// A number is computed as a double and accepted only if the rounding error cannot change the
// resulting float (Clinger, "How to read floating point numbers accurately", 1990). The result has
// the same bits as that of std::from_chars, which handles the rare remaining cases.
//
// Threads: pure functions.
#pragma once

#include <cstddef>

namespace cistern {

// Parses the number at the beginning of [begin, end) as std::from_chars does and returns its end.
// Returns null and leaves *x unchanged if the text is not an ordinary number; the caller then needs
// a slower parser to classify it.
const char* ReadFloat(const char* begin, const char* end, float* x);

// Parses up to `num` numbers, separated by single spaces, into out[]; returns how many. Stops at
// the first one that is not an ordinary number. *at: the start of the first number; on return, the
// position after the space that follows the last number parsed.
size_t ReadFloats(const char** at, const char* end, float* out, size_t num);

}  // namespace cistern
