// What programs and people write around and inside a time, removed.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace cistern::data {

// A time as the formats of time_text.h expect it: with English names of months ("1er janvier 2024"
// is "1 Jan 2024"), without the call of a program (ISODate("..."), datetime.date(2024, 5, 31)), the
// name of a zone at the end (" CET", "[Europe/Rome]") and the endings of ordinals (31st). Days of
// ISO's weeks (2024-W12-7), weeks (their Monday), days of the year (2024-061) and dates in Chinese,
// Japanese and Korean become 2024-05-31. Any other text is returned as it is.
std::string PlainTime(absl::string_view text);

}  // namespace cistern::data
