#include "worker/data/prepare/plain_time.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "worker/data/recipe/field_values.h"

namespace cistern::data {
namespace {

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// Without the name of a zone behind a time: "10:15:00 CET", "10:15 PM GMT+1",
// "10:15:00+01:00[Europe/Rome]". An offset in digits stays.
absl::string_view WithoutZone(absl::string_view text) {
  constexpr size_t kShortest = 2, kLongest = 5;
  if (absl::EndsWith(text, "]") && text.find('[') > 0) text = text.substr(0, text.find('['));
  const size_t space = text.rfind(' ');
  if (space == absl::string_view::npos || space == 0) return text;
  const absl::string_view zone = text.substr(space + 1);
  const size_t name =
      std::find_if_not(zone.begin(), zone.end(), absl::ascii_isupper) - zone.begin();
  if (name < kShortest || name > kLongest || zone == "AM" || zone == "PM") return text;
  const absl::string_view offset = zone.substr(name);
  const bool is_offset =
      offset.empty() || ((offset[0] == '+' || offset[0] == '-') &&
                         offset.find_first_not_of("0123456789:", 1) == absl::string_view::npos);
  const absl::string_view time = text.substr(0, space);
  // A month may be the last word, in capitals, but only a clock has a zone.
  const size_t colon = time.find(':');
  const bool is_clock = colon != absl::string_view::npos && colon > 0 && IsDigit(time[colon - 1]) &&
                        colon + 1 < time.size() && IsDigit(time[colon + 1]);
  return is_offset && is_clock ? time : text;
}

// English short names, and how months begin in German, French, Spanish, Italian, Portuguese, Dutch,
// Danish, Swedish, Polish, Turkish and Russian. Longer beginnings come first.
struct MonthName {
  absl::string_view begin, english;
};
constexpr MonthName kMonths[] = {{"januar", "Jan"},
                                 {"janv", "Jan"},
                                 {"jan", "Jan"},
                                 {"ene", "Jan"},
                                 {"gen", "Jan"},
                                 {"j\xc3\xa4n", "Jan"},
                                 {"f\xc3\xa9v", "Feb"},
                                 {"fev", "Feb"},
                                 {"feb", "Feb"},
                                 {"m\xc3\xa4r", "Mar"},
                                 {"mar", "Mar"},
                                 {"avr", "Apr"},
                                 {"abr", "Apr"},
                                 {"apr", "Apr"},
                                 {"mai", "May"},
                                 {"may", "May"},
                                 {"mag", "May"},
                                 {"juin", "Jun"},
                                 {"jun", "Jun"},
                                 {"giu", "Jun"},
                                 {"juil", "Jul"},
                                 {"jul", "Jul"},
                                 {"lug", "Jul"},
                                 {"ao\xc3\xbb", "Aug"},
                                 {"aou", "Aug"},
                                 {"aug", "Aug"},
                                 {"ago", "Aug"},
                                 {"sep", "Sep"},
                                 {"set", "Sep"},
                                 {"oct", "Oct"},
                                 {"okt", "Oct"},
                                 {"out", "Oct"},
                                 {"ott", "Oct"},
                                 {"nov", "Nov"},
                                 {"d\xc3\xa9"
                                  "c",
                                  "Dec"},
                                 {"dec", "Dec"},
                                 {"dez", "Dec"},
                                 {"dic", "Dec"},
                                 {"mrt", "Mar"},
                                 {"maa", "Mar"},
                                 {"mei", "May"},
                                 {"maj", "May"},
                                 {"des", "Dec"},
                                 {"sty", "Jan"},
                                 {"lut", "Feb"},
                                 {"kwi", "Apr"},
                                 {"cze", "Jun"},
                                 {"lip", "Jul"},
                                 {"sie", "Aug"},
                                 {"wrz", "Sep"},
                                 {"pa\xc5\xba", "Oct"},
                                 {"lis", "Nov"},
                                 {"gru", "Dec"},
                                 {"oca", "Jan"},
                                 {"\xc5\x9fub", "Feb"},
                                 {"\xc5\x9eub", "Feb"},
                                 {"nis", "Apr"},
                                 {"haz", "Jun"},
                                 {"tem", "Jul"},
                                 {"a\xc4\x9fu", "Aug"},
                                 {"eyl", "Sep"},
                                 {"eki", "Oct"},
                                 {"kas", "Nov"},
                                 {"ara", "Dec"},
                                 {"\xd1\x8f\xd0\xbd\xd0\xb2", "Jan"},
                                 {"\xd0\xaf\xd0\xbd\xd0\xb2", "Jan"},
                                 {"\xd1\x84\xd0\xb5\xd0\xb2", "Feb"},
                                 {"\xd0\xa4\xd0\xb5\xd0\xb2", "Feb"},
                                 {"\xd0\xbc\xd0\xb0\xd1\x80", "Mar"},
                                 {"\xd0\x9c\xd0\xb0\xd1\x80", "Mar"},
                                 {"\xd0\xb0\xd0\xbf\xd1\x80", "Apr"},
                                 {"\xd0\x90\xd0\xbf\xd1\x80", "Apr"},
                                 {"\xd0\xbc\xd0\xb0", "May"},
                                 {"\xd0\x9c\xd0\xb0", "May"},
                                 {"\xd0\xb8\xd1\x8e\xd0\xbd", "Jun"},
                                 {"\xd0\x98\xd1\x8e\xd0\xbd", "Jun"},
                                 {"\xd0\xb8\xd1\x8e\xd0\xbb", "Jul"},
                                 {"\xd0\x98\xd1\x8e\xd0\xbb", "Jul"},
                                 {"\xd0\xb0\xd0\xb2\xd0\xb3", "Aug"},
                                 {"\xd0\x90\xd0\xb2\xd0\xb3", "Aug"},
                                 {"\xd1\x81\xd0\xb5\xd0\xbd", "Sep"},
                                 {"\xd0\xa1\xd0\xb5\xd0\xbd", "Sep"},
                                 {"\xd0\xbe\xd0\xba\xd1\x82", "Oct"},
                                 {"\xd0\x9e\xd0\xba\xd1\x82", "Oct"},
                                 {"\xd0\xbd\xd0\xbe\xd1\x8f", "Nov"},
                                 {"\xd0\x9d\xd0\xbe\xd1\x8f", "Nov"},
                                 {"\xd0\xb4\xd0\xb5\xd0\xba", "Dec"},
                                 {"\xd0\x94\xd0\xb5\xd0\xba", "Dec"}};

// The English name of the month that a word names in one of the languages; "": none.
absl::string_view EnglishMonth(absl::string_view word) {
  const auto month = std::find_if(std::begin(kMonths), std::end(kMonths), [&](const auto& one) {
    return absl::StartsWithIgnoreCase(word, one.begin);
  });
  return month == std::end(kMonths) ? "" : month->english;
}

// Whether a word at `place` ends an ordinal number: 1er, 31st.
bool IsOrdinal(absl::string_view text, size_t place, absl::string_view word) {
  constexpr absl::string_view kEndings[] = {"er", "st", "nd", "rd", "th"};
  return place > 0 && IsDigit(text[place - 1]) &&
         std::find(std::begin(kEndings), std::end(kEndings), word) != std::end(kEndings);
}

// "1er janvier 2024", "31. Mai 2024", "3 de enero de 2024 10:15", "05-Okt-2024" and "1st of January
// 2024" as in English: "1 Jan 2024". Texts without such a month stay.
std::string WithEnglishMonth(absl::string_view text) {
  std::string english;
  bool found = false;
  const auto is_of_word = [](unsigned char c) { return absl::ascii_isalpha(c) || c >= 0x80; };
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_of_word(static_cast<unsigned char>(text[end]))) ++end;
    const absl::string_view word = text.substr(i, end - i);
    const absl::string_view month = word.size() < 3 ? "" : EnglishMonth(word);
    if (!month.empty()) {
      absl::StrAppend(&english, month);
      found = true;
      if (end < text.size() && text[end] == '.') ++end;  // janv.
    } else if (word == "de" || word == "del" || word == "of") {
      absl::StripTrailingAsciiWhitespace(&english);
    } else if (word == "r" || word == "\xd0\xb3") {  // "year" in Polish and Russian
      if (end < text.size() && text[end] == '.') ++end;
    } else if (!IsOrdinal(text, i, word)) {
      absl::StrAppend(&english, word);
    }
    if (word.empty()) {
      const bool is_of_day = text[i] == '.' && text.substr(i + 1, 1) == " ";  // 31. Mai
      if (!is_of_day) english += text[i];
      ++end;
    }
    i = end;
  }
  absl::StripTrailingAsciiWhitespace(&english);
  return found ? english : std::string(text);
}

// The numbers of a text such as "2024, 3, 1", as far as there are some.
std::vector<int64_t> NumbersIn(absl::string_view text) {
  std::vector<int64_t> numbers;
  int64_t number = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(part), &number)) break;
    numbers.push_back(number);
  }
  return numbers;
}

// What programs print around a time: [24/Mar/2024:10:15:00 +0000], ISODate("2024-05-31T10:15:00Z"),
// Timestamp('2024-05-31 10:15:00', tz='UTC') and datetime.datetime(2024, 5, 31, 10, 15) of Python.
std::string BareTime(absl::string_view text) {
  constexpr size_t kDay = 3, kSecond = 6;  // numbers of a day; of a second of it
  if (absl::ConsumePrefix(&text, "[")) {
    absl::ConsumeSuffix(&text, "]");
    return std::string(text);
  }
  const size_t open = text.find('(');
  if (open == 0 || open == absl::string_view::npos || !absl::EndsWith(text, ")")) {
    return std::string(text);
  }
  const absl::string_view name = text.substr(0, open);
  const auto is_of_name = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_';
  };
  if (!std::all_of(name.begin(), name.end(), is_of_name)) return std::string(text);
  absl::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (absl::StartsWith(name, "datetime.date")) {
    std::vector<int64_t> parts = NumbersIn(inside);
    if (parts.size() < kDay) return std::string(text);
    parts.resize(kSecond);
    return absl::StrFormat("%04d-%02d-%02d %02d:%02d:%02d", parts[0], parts[1], parts[2], parts[3],
                           parts[4], parts[5]);
  }
  if (!inside.empty() && (inside[0] == '\'' || inside[0] == '"')) {
    inside = inside.substr(0, inside.find(inside[0], 1) + 1);
  }
  return std::string(WithoutQuotes(inside));
}

// What .NET writes, /Date(1711274400000+0100)/: milliseconds since 1970 in UTC.
std::optional<std::string> OfNet(absl::string_view text) {
  int64_t number = 0;
  if (!absl::ConsumePrefix(&text, "/Date(") || !absl::ConsumeSuffix(&text, ")/")) {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(text.substr(0, text.find_first_of("+-", 1)), &number)) return std::nullopt;
  return absl::FormatTime("%Y-%m-%d %H:%M:%E3S", absl::FromUnixMillis(number), absl::UTCTimeZone());
}

// ISO 8601's days of weeks and years, with or without hyphens: 2024-W12-7, 2024W12 (its Monday),
// 2024-061. A day of a year without a hyphen is a number.
std::optional<std::string> OfWeekOrYear(absl::string_view text) {
  constexpr int64_t kWeeks = 53, kDaysOfWeek = 7, kDaysOfYear = 366;
  constexpr size_t kYear = 4, kWeek = 2;  // digits
  int64_t year = 0, number = 0, weekday = 1;
  if (text.size() <= kYear || !absl::SimpleAtoi(text.substr(0, kYear), &year) || year <= 0) {
    return std::nullopt;
  }
  text.remove_prefix(kYear);
  const bool hyphen = absl::ConsumePrefix(&text, "-");
  if (!absl::ConsumePrefix(&text, "W")) {
    const bool is_day = hyphen && text.size() == 3 &&
                        std::all_of(text.begin(), text.end(), IsDigit) &&
                        absl::SimpleAtoi(text, &number) && number >= 1 && number <= kDaysOfYear;
    if (!is_day) return std::nullopt;
    return absl::FormatCivilTime(absl::CivilDay(year, 1, 1) + (number - 1));
  }
  if (text.size() < kWeek || !std::all_of(text.begin(), text.begin() + kWeek, IsDigit)) {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(text.substr(0, kWeek), &number)) return std::nullopt;
  text.remove_prefix(kWeek);
  if (hyphen && !text.empty() && !absl::ConsumePrefix(&text, "-")) return std::nullopt;
  if (!text.empty() && (text.size() > 1 || !absl::SimpleAtoi(text, &weekday))) return std::nullopt;
  if (number < 1 || number > kWeeks || weekday < 1 || weekday > kDaysOfWeek) return std::nullopt;
  // Week 1 has January 4, and weeks begin on Monday.
  const absl::CivilDay begin = absl::NextWeekday(absl::CivilDay(year, 1, 4), absl::Weekday::monday);
  return absl::FormatCivilTime(begin + kDaysOfWeek * (number - 2) + (weekday - 1));
}

// Dates as written in East Asia, 2024年3月1日 10時15分 and in Korean, and
// "2024. 3. 1." of Korea and Hungary.
std::optional<std::string> OfWords(absl::string_view text) {
  constexpr size_t kYear = 4;
  if (text.size() < kYear || !std::all_of(text.begin(), text.begin() + kYear, IsDigit)) {
    return std::nullopt;
  }
  const absl::string_view rest = text.substr(kYear);
  if (absl::StartsWith(rest, ". ")) {
    std::string date = absl::StrReplaceAll(text, {{". ", "-"}});
    if (absl::EndsWith(date, ".")) date.pop_back();
    const size_t clock = date.rfind('-');
    const bool has_clock = absl::StrContains(date.substr(clock), ':');
    if (has_clock) date[clock] = ' ';
    return date;
  }
  if (!absl::StartsWith(rest, "\xe5\xb9\xb4") && !absl::StartsWith(rest, "\xeb\x85\x84")) {
    return std::nullopt;
  }
  std::string date = absl::StrReplaceAll(text, {{"\xe5\xb9\xb4", "-"},
                                                {"\xe6\x9c\x88", "-"},
                                                {"\xe6\x97\xa5", " "},
                                                {"\xe6\x97\xb6", ":"},
                                                {"\xe6\x99\x82", ":"},
                                                {"\xe5\x88\x86", ":"},
                                                {"\xe7\xa7\x92", ""},
                                                {"\xeb\x85\x84", "-"},
                                                {"\xec\x9b\x94", "-"},
                                                {"\xec\x9d\xbc", " "},
                                                {"\xec\x8b\x9c", ":"},
                                                {"\xeb\xb6\x84", ":"},
                                                {"\xec\xb4\x88", ""}});
  date = absl::StrReplaceAll(date, {{"- ", "-"}, {": ", ":"}, {"  ", " "}});
  absl::StripTrailingAsciiWhitespace(&date);
  if (absl::EndsWith(date, ":")) date.pop_back();
  return date;
}

}  // namespace

std::string PlainTime(absl::string_view text) {
  const std::string bare = BareTime(WithoutQuotes(absl::StripAsciiWhitespace(text)));
  for (const auto read : {OfNet, OfWeekOrYear, OfWords}) {
    if (std::optional<std::string> date = read(bare)) return *std::move(date);
  }
  return WithEnglishMonth(WithoutZone(bare));
}

}  // namespace cistern::data
