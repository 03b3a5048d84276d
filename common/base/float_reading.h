// Floats out of text, fast: what reading the text form of rows spends most of its time on.
//
// Through a double, with a check that its error cannot show, after Clinger ("How to read floating
// point numbers accurately", 1990): the bits of std::from_chars, which is left the rare cases.
//
// Threads: pure functions.
#pragma once

#include <cstddef>

namespace cistern {

// Reads the number at the beginning of [begin, end) as std::from_chars does and returns its end.
// Null: it is not an ordinary number, and *x is as it was; a slower reader says what it is.
const char* ReadFloat(const char* begin, const char* end, float* x);

// Reads up to `num` numbers, each up to the blank or the end behind it, into out[], as long as they
// are ordinary ones with one blank between them; returns how many. *at: of the first, and then
// behind the blank of the last.
size_t ReadFloats(const char** at, const char* end, float* out, size_t num);

}  // namespace cistern
