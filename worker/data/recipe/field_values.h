// The values of a field that holds several.
#pragma once

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {

// Removes spaces, and one pair of brackets, from both ends: "[a, b]" is "a, b", and so is what
// NumPy and others print, "array([a, b], dtype=object)". Of Spark's sparse vectors, (30,[1,5],[1.0,
// 2.0]), it is their places.
// pairs: the brackets of pairs stay, as in (a, 0.5), (b, 0.3).
absl::string_view InsideBrackets(absl::string_view field, bool pairs = false);
// Where the list begins in such a text, "array([a, b], ...": behind the parenthesis; 0: in others.
size_t OpensCall(absl::string_view field);

// Likewise in "List(a, b)" and "String[a, b]", of Scala, R, Julia and Go.
size_t OpensNamedList(absl::string_view field);

// Removes the next value from the front of `field`, with its separator. list: as in Recipe::Source;
// a separator inside quotes does not count, and the separator ' ' is any space. A
// closing bracket that separates has an opening one before each value: <a><b>, [a][b].
// pairs: neither does one in brackets that begin the value: (a, 0.5).
absl::string_view TakeValue(char separator, bool list, absl::string_view* field,
                            bool pairs = false);

// A weight in another form than value:0.5, value=0.5 and value(0.5).
struct OtherWeight {
  absl::string_view value;
  double weight = 0;
  bool is_whole = false, is_percent = false;  // as the number is written
  bool is_plain = false;  // the number may be a part of the value, such as a version
};
// Reads ('value', 0.5), value->0.5, value^0.5, value x6, value 60%, 0.5:value, 6x value and others;
// false: there is none.
bool ReadOtherWeight(absl::string_view text, OtherWeight* read);

// Removes the weight from "value:0.5", "value=0.5", "value(0.5)", or else one in another form;
// false if there is none. weight: the number.
bool RemoveWeight(absl::string_view* value, double* weight);
// The same for one of the marks ':', '=' and '('.
bool RemoveWeight(char mark, absl::string_view* value, double* weight);

// The weight of a key, for rows whose weights count: a finite float. kDataLoss: another text.
absl::Status ReadKeyWeight(absl::string_view text, double* weight);
// Removes the weight of a key, which begins after the last `mark` (Recipe::Slot::weight_mark), from
// a value; one without a weight keeps *weight. kDataLoss: with ':', what follows the colon is no
// finite float, or a value without one ends as if another mark were meant ("size=10").
absl::Status TakeKeyWeight(char mark, absl::string_view* value, double* weight);

// Removes spaces, and one pair of quotes, from both ends.
absl::string_view WithoutQuotes(absl::string_view value);

// kDataLoss: "'abc' is not a number".
absl::Status NotANumber(absl::string_view text);

// The bucket of a count, as in the winning entry of Criteo's contest: finer for small counts.
// Numbers beyond the last bucket belong to it. kDataLoss: not a number.
absl::Status BucketText(absl::string_view value, std::string* text);

// Calls visit(value) for the values of a field, empty ones included, until it returns an error.
// source: a Recipe::Source or Recipe::Slot. A value of weight 0 is left out.
template <typename Source, typename Visit>
absl::Status ForEachValue(absl::string_view field, const Source& source, const Visit& visit) {
  if (!source.separator) return visit(field);
  if (source.list) field = InsideBrackets(field, source.weights);
  while (!field.empty()) {
    absl::string_view value = TakeValue(*source.separator, source.list, &field, source.weights);
    double weight = 1;
    if (source.weights) RemoveWeight(&value, &weight);
    if (source.list) value = WithoutQuotes(value);
    if (weight == 0) continue;
    CISTERN_RETURN_IF_ERROR(visit(value));
  }
  return absl::OkStatus();
}

}  // namespace cistern::data
