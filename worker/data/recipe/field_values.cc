#include "worker/data/recipe/field_values.h"

#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/shown_text.h"

namespace cistern::data {
namespace {

bool IsQuote(char c) {
  return c == '"' || c == '\'';
}

// The place of the separator that ends the first value, or the end.
size_t EndOfValue(absl::string_view field, char separator) {
  const auto separates = [&](size_t i) {
    return separator == ' ' ? absl::ascii_isspace(static_cast<unsigned char>(field[i])) != 0
                            : field[i] == separator;
  };
  size_t i = 0;
  while (i < field.size() && field[i] == ' ' && separator != ' ') ++i;
  if (i < field.size() && IsQuote(field[i])) {
    const size_t close = field.find(field[i], i + 1);
    if (close != absl::string_view::npos) i = close + 1;  // else an apostrophe
  }
  while (i < field.size() && !separates(i)) ++i;
  return i;
}

// The bracket that begins a value which `separator` ends, as in <a><b>; 0: it is no bracket.
char OpeningOf(char separator) {
  switch (separator) {
    case '>':
      return '<';
    case ']':
      return '[';
    case ')':
      return '(';
    default:
      return 0;
  }
}

// The list in what Python and its libraries print: "array([1, 2], dtype=int8)" is "[1, 2]".
absl::string_view WithoutCall(absl::string_view field) {
  const size_t open = OpensCall(field);
  if (open == 0 || field.back() != ')') return field;
  const absl::string_view inside = absl::StripAsciiWhitespace(field.substr(open));
  const size_t close = inside.find_last_of(inside.front() == '[' ? ']' : '}');
  return close == absl::string_view::npos ? field : inside.substr(0, close + 1);
}

// The places of a sparse vector as Spark prints it: "(30,[1,5],[0.5,2.0])" is "1,5". Null: another
// text.
absl::string_view PlacesOfSparse(absl::string_view field) {
  if (!absl::ConsumePrefix(&field, "(")) return {};
  const size_t size = field.find_first_not_of("0123456789");
  if (size == 0 || size == absl::string_view::npos) return {};
  field.remove_prefix(size);
  if (!absl::ConsumePrefix(&field, ",[")) return {};
  const size_t close = field.find("],[");
  return close == absl::string_view::npos || !absl::EndsWith(field, "])") ? absl::string_view()
                                                                          : field.substr(0, close);
}

}  // namespace

size_t OpensCall(absl::string_view field) {
  size_t name = 0;
  const auto is_of_name = [](char c) { return absl::ascii_isalpha(c) || c == '.' || c == '_'; };
  while (name < field.size() && is_of_name(field[name])) ++name;
  if (name == 0 || name == field.size() || field[name] != '(') return 0;
  size_t begin = name + 1;
  // defaultdict(<class 'float'>, {...})
  const size_t type = field.find(">, ", begin);
  if (absl::StartsWith(field.substr(begin), "<class ") && type != absl::string_view::npos) {
    begin = type + 3;
  }
  const size_t inside = field.find_first_not_of(" \n", begin);
  return inside < field.size() && absl::StrContains("[{", field[inside]) ? begin : 0;
}

absl::string_view InsideBrackets(absl::string_view field) {
  field = WithoutCall(absl::StripAsciiWhitespace(field));
  if (field.size() < 2) return field;
  if (const absl::string_view places = PlacesOfSparse(field); places.data() != nullptr) {
    return places;
  }
  for (const char* const pair : {"[]", "()", "{}"}) {
    if (field.front() != pair[0] || field.back() != pair[1]) continue;
    return absl::StripAsciiWhitespace(field.substr(1, field.size() - 2));
  }
  return field;
}

absl::string_view TakeValue(char separator, bool list, absl::string_view* field) {
  const size_t end =
      list ? EndOfValue(*field, separator) : std::min(field->find(separator), field->size());
  absl::string_view value = field->substr(0, end);
  field->remove_prefix(std::min(end + 1, field->size()));
  if (const char open = OpeningOf(separator); open != 0) {
    const absl::string_view bare = absl::StripAsciiWhitespace(value);
    if (!bare.empty() && bare.front() == open) value = bare.substr(1);
  }
  return value;
}

bool RemoveWeight(char mark, absl::string_view* value, double* weight) {
  const size_t place = value->rfind(mark);
  if (place == absl::string_view::npos || place == 0) return false;
  absl::string_view number = absl::StripTrailingAsciiWhitespace(value->substr(place + 1));
  if (mark == '(' && !absl::ConsumeSuffix(&number, ")")) return false;
  if (ReadNumber(number, weight) != NumberKind::kFinite) return false;
  *value = value->substr(0, place);
  return true;
}

bool RemoveWeight(absl::string_view* value, double* weight) {
  return RemoveWeight(':', value, weight) || RemoveWeight('=', value, weight) ||
         RemoveWeight('(', value, weight);
}

absl::Status ReadKeyWeight(absl::string_view text, double* weight) {
  const bool is_finite = ReadNumber(text, weight) == NumberKind::kFinite;
  if (is_finite && std::abs(*weight) <= double{std::numeric_limits<float>::max()}) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("'", ShownText(text, 40),
                                          "' is not the weight of a key: write a finite number"));
}

absl::Status TakeKeyWeight(char mark, absl::string_view* value, double* weight) {
  const absl::string_view whole = *value;
  const auto shown = [whole] { return absl::StrCat("'", ShownText(whole, 40), "'"); };
  double read = 0;
  if (mark != ':') {
    if (!RemoveWeight(mark, value, &read)) return absl::OkStatus();
    if (std::abs(read) > double{std::numeric_limits<float>::max()}) {
      return absl::DataLossError(absl::StrCat(shown(), ": the weight is beyond a float"));
    }
    *weight = read;
    return absl::OkStatus();
  }
  const size_t colon = whole.rfind(':');
  if (colon == absl::string_view::npos) {
    absl::string_view rest = whole;
    if (!RemoveWeight(&rest, &read)) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(shown(), " has no ':', which begins the weights of this column: write '",
                     ShownText(rest, 40), ":", read,
                     "' if its number is the weight, and ':1' after "
                     "it if the number is a part of the value"));
  }
  CISTERN_RETURN_IF_ERROR(AddContext(ReadKeyWeight(whole.substr(colon + 1), weight), shown()));
  *value = whole.substr(0, colon);
  return absl::OkStatus();
}

absl::string_view WithoutQuotes(absl::string_view value) {
  value = absl::StripAsciiWhitespace(value);
  const bool quoted = value.size() >= 2 && IsQuote(value.front()) && value.back() == value.front();
  return quoted ? value.substr(1, value.size() - 2) : value;
}

absl::Status NotANumber(absl::string_view text) {
  return absl::DataLossError(absl::StrCat("'", ShownText(text, 40), "' is not a number"));
}

absl::Status BucketText(absl::string_view value, std::string* text) {
  constexpr double kMost = 1e15;
  double x = 0;
  if (ReadNumber(value, &x) != NumberKind::kFinite) return NotANumber(value);
  x = std::clamp(x, -kMost, kMost);
  const bool large = x > 2;
  const double bucket = large ? std::log(x) * std::log(x) : x;
  *text = absl::StrCat(large ? "b" : "", static_cast<int64_t>(std::floor(bucket)));
  return absl::OkStatus();
}

}  // namespace cistern::data
