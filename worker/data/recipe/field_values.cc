#include "worker/data/recipe/field_values.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

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
size_t EndOfValue(absl::string_view field, char separator, bool pairs) {
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
  if (pairs && i < field.size() && (field[i] == '(' || field[i] == '[')) {  // (a, 0.5)
    const size_t close = field.find(field[i] == '(' ? ')' : ']', i);
    if (close != absl::string_view::npos) i = close + 1;
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

// The list in "List(a, b)". Null: another text.
absl::string_view InsideNamedList(absl::string_view field) {
  const size_t open = OpensNamedList(field);
  if (open == 0) return {};
  const char bracket = field[open - 1];
  const char close = bracket == '(' ? ')' : bracket == '[' ? ']' : '}';
  if (field.find(close) != field.size() - 1) return {};  // c(0.5), d(0.3)
  const absl::string_view inside = field.substr(open, field.size() - open - 1);
  return IsFiniteNumber(inside) ? absl::string_view() : absl::StripAsciiWhitespace(inside);
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

// A number that may be a weight; "60%" is one.
bool ReadAmount(absl::string_view text, OtherWeight* read) {
  text = absl::StripAsciiWhitespace(text);
  read->is_percent = absl::ConsumeSuffix(&text, "%");
  if (text.empty() ||
      !(absl::ascii_isdigit(static_cast<unsigned char>(text[0])) || text[0] == '.')) {
    return false;
  }
  if (ReadNumber(text, &read->weight) != NumberKind::kFinite) return false;
  read->is_whole = !absl::StrContains(text, '.');
  return true;
}

// "('a', 0.5)", "[a, 0.5]".
bool ReadPair(absl::string_view text, OtherWeight* read) {
  if (text.size() < 2 || !((text.front() == '(' && text.back() == ')') ||
                           (text.front() == '[' && text.back() == ']'))) {
    return false;
  }
  text = text.substr(1, text.size() - 2);
  const size_t comma = text.rfind(',');
  if (comma == absl::string_view::npos || comma == 0) return false;
  if (!ReadAmount(text.substr(comma + 1), read)) return false;
  read->value = absl::StripAsciiWhitespace(text.substr(0, comma));
  read->is_plain = false;
  return true;
}

// Whether a text is pairs without brackets around them all.
bool ArePairs(absl::string_view field) {
  OtherWeight one;
  if (ReadPair(field, &one)) return true;
  if (absl::StrContains("([{", field.substr(1, 1))) return false;
  for (const char* const between : {"),(", "), (", "],[", "], ["}) {
    if (absl::StrContains(field, between)) return true;
  }
  return false;
}

}  // namespace

size_t OpensNamedList(absl::string_view field) {
  static constexpr absl::string_view kNames[] = {
      "List",   "Set",    "Seq",   "Array",   "ArrayBuffer", "WrappedArray", "ListBuffer",
      "Buffer", "Vector", "Map",   "HashSet", "HashMap",     "ArraySeq",     "c",
      "list",   "array",  "set",   "tuple",   "vector",      "String",       "Any",
      "map",    "POINT",  "Point", "POINT "};
  const size_t open = field.find_first_of("([{");
  if (open == 0 || open == absl::string_view::npos) return 0;
  const bool is_named = std::count(std::begin(kNames), std::end(kNames), field.substr(0, open)) > 0;
  return is_named ? open + 1 : 0;
}

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

absl::string_view InsideBrackets(absl::string_view field, bool pairs) {
  field = WithoutCall(absl::StripAsciiWhitespace(field));
  if (field.size() < 2) return field;
  if (const absl::string_view inside = InsideNamedList(field); inside.data() != nullptr) {
    return inside;
  }
  if (const absl::string_view places = PlacesOfSparse(field); places.data() != nullptr) {
    return places;
  }
  if (pairs && ArePairs(field)) return field;
  for (const char* const pair : {"[]", "()", "{}"}) {
    if (field.front() != pair[0] || field.back() != pair[1]) continue;
    return absl::StripAsciiWhitespace(field.substr(1, field.size() - 2));
  }
  return field;
}

absl::string_view TakeValue(char separator, bool list, absl::string_view* field, bool pairs) {
  const size_t end =
      list ? EndOfValue(*field, separator, pairs) : std::min(field->find(separator), field->size());
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
  OtherWeight other;
  if (RemoveWeight(':', value, weight) || RemoveWeight('=', value, weight) ||
      RemoveWeight('(', value, weight)) {
    return true;
  }
  if (!ReadOtherWeight(*value, &other)) return false;
  *value = other.value;
  *weight = other.weight;
  return true;
}

bool ReadOtherWeight(absl::string_view text, OtherWeight* read) {
  text = absl::StripAsciiWhitespace(text);
  if (ReadPair(text, read)) return true;
  struct Mark {
    absl::string_view text;
    bool is_clear;     // whole numbers are weights, too
    bool is_of_share;  // only shares are weights: Chrome/91.0 is a version
  };
  static constexpr Mark kMarks[] = {{"=>", false, false}, {"->", false, false}, {" x", true, false},
                                    {"*", true, false},   {"^", false, false},  {"#", false, false},
                                    {"|", false, false},  {",", false, false},  {"~", false, true},
                                    {"@", false, true},   {"/", false, true},   {"_", false, true},
                                    {" - ", false, true}, {" ", false, true}};
  for (const auto& [mark, is_clear, is_of_share] : kMarks) {
    const size_t place = text.rfind(mark);
    if (place == 0 || place == absl::string_view::npos) continue;
    if (!ReadAmount(text.substr(place + mark.size()), read)) continue;
    read->value = absl::StripTrailingAsciiWhitespace(text.substr(0, place));
    const bool is_share = read->weight >= 0 && read->weight <= 1;
    read->is_plain =
        !is_clear && !read->is_percent && (read->is_whole || (is_of_share && !is_share));
    return true;
  }
  for (const auto& [open, close] :
       {std::pair('[', ']'), std::pair('<', '>'), std::pair('(', ')')}) {
    const size_t place = text.rfind(open);
    if (place == 0 || place == absl::string_view::npos || text.back() != close) continue;
    if (!ReadAmount(text.substr(place + 1, text.size() - place - 2), read)) continue;
    read->value = absl::StripTrailingAsciiWhitespace(text.substr(0, place));
    read->is_plain = read->is_whole && !read->is_percent;
    return true;
  }
  for (const absl::string_view mark : {":", "*", "x ", " "}) {
    const size_t place = text.find(mark);
    if (place == absl::string_view::npos || !ReadAmount(text.substr(0, place), read)) continue;
    read->value = absl::StripLeadingAsciiWhitespace(text.substr(place + mark.size()));
    const bool is_clear = mark == "*" || mark == "x ";
    read->is_plain = !is_clear && !read->is_percent && read->is_whole;
    return !read->value.empty();
  }
  return false;
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
