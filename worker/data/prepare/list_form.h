// Columns whose fields hold several values, in the forms that other programs write.
#pragma once

#include <optional>
#include <string>

#include "worker/data/prepare/convert.h"
#include "worker/data/prepare/table_profile.h"

namespace cistern::data {

// The form of the lists in a text column: values between |, ;, commas, ^, spaces, control
// characters, or, if fields hold different numbers of values, / + : and line ends, and _ - . if
// few fields repeat, as they are or in brackets ([27, 9], {a, b}, ['a', 'b'] as Python and
// NumPy print them), with or without weights (a:0.5|b:0.3, a=0.5, a(0.5)). nullopt: its fields are
// single values.
//
// Lists combine the same values again and again, so there are fewer distinct values than fields.
// Texts that can be something else (words, decimal commas) count as lists only if there are far
// fewer.
//
// separator: the one that is known to separate values, or 0.
std::optional<ConvertOptions::ListForm> FindListForm(const TableProfile& profile, size_t column,
                                                     char separator = 0);

// What begins the weights of the values (Recipe::Slot::weight_mark): ':' if the number of some
// value follows one, else '=' or '(' if some does.
char FindWeightMark(const TableProfile& profile, size_t column,
                    const ConvertOptions::ListForm& form);

// Whether the weights of its values are written in another way (ReadOtherWeight).
bool HasOtherWeights(const TableProfile& profile, size_t column,
                     const ConvertOptions::ListForm& form);

// The form in words, for people.
std::string NoteOf(const ConvertOptions::ListForm& form);

// Whether the lists of a column hold numbers with a fraction, as an embedding does.
bool HoldsVectors(const TableProfile& profile, size_t column, const ConvertOptions::ListForm& form);

}  // namespace cistern::data
