// Finds text columns that people would read as numbers or dates.
#pragma once

#include <string>

#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

// What to say about a column of text, with the fix: its values are numbers with a decimal comma, a
// currency, a percent sign or thousands separators; numbers but for a few words; or dates with the
// day or month first. Empty: it is plain text.
std::string TextNote(const TableProfile& profile, size_t place);

// Which values of a column differ only in case, in spaces or quotes around them or in zeros, if a
// hundredth of the rows have the rarer one of such values. Empty: hardly any.
std::string SpellingNote(const TableProfile& profile, size_t place);

// Whether most fields are arrays without their middle, as NumPy prints long ones: [1. 2. ... 9.].
bool AreShortened(const TableProfile& profile, size_t place);

// The same for numbers that are read in their form: "decimal comma; '-' counts as missing".
std::string NoteOf(const NumberForm& form);

}  // namespace cistern::data
