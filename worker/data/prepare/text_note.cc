#include "worker/data/prepare/text_note.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/shown_text.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

bool HasDecimalComma(absl::string_view text) {
  const size_t comma = text.find(',');
  const bool one = comma != absl::string_view::npos && text.find(',', comma + 1) == text.npos;
  return one && IsFiniteNumber(absl::StrReplaceAll(text, {{",", "."}}));
}

// 1,234.50
bool HasThousands(absl::string_view text) {
  const size_t comma = text.find(',');
  if (comma == absl::string_view::npos || comma == 0) return false;
  const size_t end = std::min(text.find('.'), text.size());
  for (size_t i = end; i-- > comma;) {
    if ((end - i) % 4 == 0 ? text[i] != ',' : !absl::ascii_isdigit(text[i])) return false;
  }
  return IsFiniteNumber(absl::StrReplaceAll(text, {{",", ""}}));
}

// $5, 5%, EUR signs, and the like; also with thousands separators.
bool HasUnit(absl::string_view text) {
  const size_t size = text.size();
  for (const char* const unit : {"$", "%", "\xe2\x82\xac", "\xc2\xa3"}) {
    absl::ConsumePrefix(&text, unit);
    absl::ConsumeSuffix(&text, unit);
  }
  if (text.size() == size) return false;
  text = absl::StripAsciiWhitespace(text);
  return IsFiniteNumber(text) || HasThousands(text) || HasDecimalComma(text);
}

// 31/05/2024, 5-31-24 and 31.05.2024, with or without a time.
bool IsDateDayFirst(absl::string_view text) {
  size_t parts = 0, digits = 0;
  for (const char c : text) {
    if (absl::ascii_isdigit(c)) {
      ++digits;
    } else if ((c == '/' || c == '-' || c == '.') && digits > 0 && digits <= 2 && parts < 2) {
      ++parts;
      digits = 0;
    } else {
      return parts == 2 && (digits == 2 || digits == 4) && (c == ' ' || c == 'T');
    }
  }
  return parts == 2 && (digits == 2 || digits == 4);
}

// What is left of a text that people and programs write in several ways: without case, spaces,
// quotes and the like around it (="1047", '1047, #1047) and zeros in front of digits.
std::string Folded(absl::string_view text) {
  const std::string plain = absl::AsciiStrToLower(WithPlainSpaces(text));
  absl::string_view bare = plain;
  const size_t first = bare.find_first_not_of("=\"'`# ");
  if (first == absl::string_view::npos) return plain;
  bare = bare.substr(first, bare.find_last_not_of("\"'` ") + 1 - first);
  std::string digits;
  size_t exponent = 0;
  if (IsExponentCode(bare, &exponent) || !IntegerCode(bare, &digits)) return std::string(bare);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return digits;
}

// The text of a value: however an integer is written, it is one value.
std::string DistinctValue(const TableProfile& profile, size_t place, const std::string& text) {
  std::string digits;
  const bool is_integer = profile.columns[place].type == ColumnType::kInteger;
  return is_integer && IntegerCode(text, &digits) ? digits : text;
}

}  // namespace

std::string NoteOf(const NumberForm& form) {
  std::vector<std::string> parts;
  if (form.decimal == ',') parts.push_back("written with a decimal comma");
  if (form.group != 0) {
    parts.push_back(absl::StrCat("thousands separated by ",
                                 form.group == ' ' ? "spaces" : std::string(1, form.group)));
  }
  if (!form.unit.empty()) parts.push_back(absl::StrCat("unit ", form.unit));
  if (!form.none.empty()) {
    std::vector<std::string> none;
    for (const std::string& text : form.none) {
      none.push_back(absl::StrCat("'", ShownText(text, 20), "'"));
    }
    parts.push_back(absl::StrCat(absl::StrJoin(none, ", "),
                                 none.size() == 1 ? " counts as missing" : " count as missing"));
  }
  if (parts.empty())
    parts.push_back("(7) counts as -7, about 7 and 5-9 as 7, 1.2k as 1200, 0:01:30 as 90");
  return absl::StrJoin(parts, ", ");
}

bool AreShortened(const TableProfile& profile, size_t place) {
  size_t seen = 0, shortened = 0;
  for (const std::vector<std::string>& row : profile.sample) {
    const absl::string_view text = row[place];
    if (text.empty()) continue;
    ++seen;
    const size_t dots = text.find("...");
    shortened += absl::StrContains(text.substr(0, dots), '[') && dots != absl::string_view::npos;
  }
  return seen > 0 && 2 * shortened > seen;
}

std::string TextNote(const TableProfile& profile, size_t place) {
  size_t seen = 0, commas = 0, thousands = 0, units = 0, dates = 0, numbers = 0;
  std::string other;
  for (const std::vector<std::string>& row : profile.sample) {
    const std::string& text = row[place];
    if (text.empty()) continue;
    ++seen;
    const bool number = IsFiniteNumber(text);
    numbers += number;
    if (!number) other = text;
    size_t digits = 0;
    if (IsExponentCode(text, &digits)) return "";  // codes such as 10e1, which are texts
    thousands += HasThousands(text);
    commas += HasDecimalComma(text);
    units += HasUnit(text);
    dates += IsDateDayFirst(text);
  }
  // 1,234 is either; a column of prices has some below 1,000.
  const auto most = [&](size_t count) { return seen > 0 && 10 * (count + numbers) > 9 * seen; };
  if (units > 0 && most(units)) {
    return "text: numbers with a unit ($, %)? Remove the unit to use the column as numbers";
  }
  if (thousands > 0 && most(thousands) && thousands >= commas) {
    return "text: numbers with thousands separators? Remove the separators to use the column as "
           "numbers";
  }
  if (commas > 0 && most(commas)) {
    return "text: numbers with a decimal comma? Replace the commas by points to use the column as "
           "numbers";
  }
  if (dates > 0 && 10 * dates > 9 * seen) {
    return "text: dates? Write them as 2024-05-31, so that the latest rows can be held out";
  }
  if (seen > 0 && 10 * numbers > 9 * seen) {
    return absl::StrCat("text, though nearly all values are numbers: correct the others, such as '",
                        ShownText(other, 20), "', or leave them empty");
  }
  return "";
}

std::string SpellingNote(const TableProfile& profile, size_t place) {
  constexpr size_t kMinRows = 20, kMaxOneIn = 100;
  std::map<std::string, std::map<std::string, size_t>> words;  // rows by text, by folded text
  size_t seen = 0, rarer = 0;
  for (const std::vector<std::string>& row : profile.sample) {
    if (row[place].empty()) continue;
    ++seen;
    ++words[Folded(row[place])][DistinctValue(profile, place, row[place])];
  }
  std::pair<std::string, std::string> shown;
  size_t most = 0;
  for (const auto& [folded, texts] : words) {
    if (texts.size() < 2) continue;
    std::vector<std::pair<size_t, std::string>> rows;
    for (const auto& [text, count] : texts) rows.emplace_back(count, text);
    std::sort(rows.rbegin(), rows.rend());
    for (size_t i = 1; i < rows.size(); ++i) rarer += rows[i].first;
    if (rows[1].first <= most) continue;
    most = rows[1].first;
    shown = {rows[0].second, rows[1].second};
  }
  if (rarer < kMinRows || kMaxOneIn * rarer < seen) return "";
  return absl::StrCat("'", ShownText(shown.first, 20), "' and '", ShownText(shown.second, 20),
                      "' differ in case, spaces, quotes or zeros only, and are two values; ",
                      100 * rarer / seen,
                      "% of the rows have such a second spelling: if they mean the same, spell "
                      "them the same");
}

}  // namespace cistern::data
