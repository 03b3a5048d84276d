// What the text of a field means: numbers, integers, missing values, the two classes of a label.
//
// What inspects tables and what encodes rows share these rules, so that what is accepted once is
// accepted everywhere. Parquet columns are read as text first (parquet_table.h).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace cistern::data {

// Without spaces around it, with plain ones for the spaces of typography (U+00A0, U+2009, U+202F),
// and without marks that have no width (U+200B, U+FEFF).
std::string WithPlainSpaces(absl::string_view text);

enum class NumberKind {
  kNone,      // not a number
  kFinite,    // a decimal number, such as 3, -0.5 or 1e-7; spaces around it do not count
  kInfinite,  // inf, -Infinity, 1e400
  kNan,       // nan in any case
};
// value: set for kFinite. Hexadecimal numbers are none: such texts are ids and addresses.
NumberKind ReadNumber(absl::string_view text, double* value);
// Whether the text is a finite number.
bool IsFiniteNumber(absl::string_view text);

// Whether the text is a number without a fraction, however long it is and however it is written:
// 1047, 1047.0 (pandas, if a value of the column is missing), 1.047e3.
bool IsInteger(absl::string_view text);
// The same; digits: gets the one way to write it, "1047". Leading zeros of a number without an
// exponent stay: they are a part of codes such as 00123.
bool IntegerDigits(absl::string_view text, std::string* digits);

// Whether the text is digits, e and digits, such as 12e4: so look codes, some of which are the same
// number (1e2, 10e1). Programs write numbers with a point or a sign, 1.2e+05. digits: those before
// the e; people write a number with one, 1e5.
bool IsExponentCode(absl::string_view text, size_t* digits);

// The same as IntegerDigits for the values of a column of integers, where true and false (in any
// case) are 1 and 0, as in Parquet, and thousands may be separated: 1,047 and 1'047.
bool IntegerCode(absl::string_view text, std::string* digits);
// Whether the text is true or false, in any case.
bool IsTruth(absl::string_view text);

// The texts that `cistern init` takes for a missing value, sorted. " " stands for any number of
// spaces.
const std::vector<std::string>& UsualMissingTexts();
// Whether a text is empty or one of these.
bool IsUsuallyMissing(absl::string_view text);
// The same where a number belongs, in any case, and further texts that are no word of a category
// there: "-", "none", "unknown", "#DIV/0!".
bool StandsForNoNumber(absl::string_view text);

// The one way to write a label: "1.0" and "1" are "1"; "Yes", "YES" and "yes." are "yes"; b'x', "x"
// in quotes and ="x" are "x".
std::string LabelMeaning(absl::string_view text);
// The same for labels that are true or false: yes, y, t and true are "1"; no, n, f and false are
// "0". Other texts as LabelMeaning.
std::string TruthMeaning(absl::string_view text);
// Whether all texts are words or numbers of a truth value: '1' for those of "1", '0' for those of
// "0"; 0 if they are something else.
char TruthOf(absl::Span<const std::string> texts);

}  // namespace cistern::data
