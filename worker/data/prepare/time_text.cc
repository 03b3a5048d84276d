#include "worker/data/prepare/time_text.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "worker/data/prepare/plain_time.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

bool IsIsoDate(absl::string_view text) {
  if (text.size() < 10 || text.size() > 35) return false;
  for (size_t i = 0; i < 10; ++i) {
    const bool mark = i == 4 || i == 7;
    if (mark ? text[i] != '-' && text[i] != '/' : !absl::ascii_isdigit(text[i])) return false;
  }
  return text.size() == 10 || text[10] == ' ' || text[10] == 'T';
}

// A format of absl::ParseTime; partner: that with day and month in each other's place, or 0.
struct Format {
  std::string text;
  size_t partner = 0;
};

// By the number of the form. Form 0 is ISO's, which is read without a format.
const std::vector<Format>& Formats() {
  static const auto* const formats = [] {
    auto* const all = new std::vector<Format>(1);
    const char* const times[] = {
        "", " %H:%M", " %H:%M:%E*S", " %H:%M:%E*S%Ez", "T%H:%M:%E*S", " %I:%M %p", " %I:%M:%S %p"};
    const char* const days[][2] = {
        {"%d/%m/%Y", "%m/%d/%Y"},   {"%d-%m-%Y", "%m-%d-%Y"},  {"%d.%m.%Y", nullptr},
        {"%d/%m/%y", "%m/%d/%y"},   {"%Y.%m.%d", nullptr},     {"%b %d, %Y", nullptr},
        {"%d %b %Y", nullptr},      {"%d-%b-%Y", nullptr},     {"%d-%b-%y", nullptr},
        {"%a %b %d %Y", nullptr},   {"%b %d %Y", nullptr},     {"%d %b %Y,", nullptr},
        {"%a, %b %d, %Y", nullptr}, {"%a, %d %b %Y", nullptr}, {"%E4Y_%m_%d", nullptr}};
    for (const auto& [first, second] : days) {
      for (const char* const time : times) {
        const size_t place = all->size();
        all->push_back({absl::StrCat(first, time), second == nullptr ? 0 : place + 1});
        if (second != nullptr) all->push_back({absl::StrCat(second, time), place});
      }
    }
    for (const char* const whole :
         {"%a, %d %b %Y %H:%M:%S %z", "%a %b %d %H:%M:%S %z %Y", "%a %b %d %H:%M:%S %Z %Y",
          "%a %b %d %H:%M:%S %Y", "%d/%b/%Y:%H:%M:%S %z", "%E4Y%m%dT%H%M%SZ", "%E4Y%m%dT%H%M%S",
          "%E4Y%m%d %H:%M:%S", "%E4Y%m%d %H:%M",
          // Without leading zeros, as Excel and Chinese programs write them.
          "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%E*S", "%Y-%m-%d", "%Y-%m-%d %H:%M",
          "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d %H", "%E4Y%m%dT%H%M%E*SZ", "%E4Y-%m-%d_%H:%M:%E*S",
          "%E4Y_%m_%d_%H_%M_%S", "%E4Y-%m-%d-%H-%M-%S", "%E4Y-%m-%d-%H", "%E4Y/%m/%d/%H",
          "%E4Y%m%d %H", "%E4Y%m%d_%H%M%S", "%E4Y%m%d-%H%M%S",
          // Of SAS, and of Oracle.
          "%d%b%Y", "%d%b%y", "%d%b%Y:%H:%M:%E*S", "%d%b%y:%H:%M:%E*S", "%d-%b-%y %I.%M.%E*S %p",
          "%d-%b-%Y %I.%M.%E*S %p"}) {
      all->push_back({whole, 0});
    }
    for (const char* const time : times) {
      all->push_back({absl::StrCat("%y-%m-%d", time), all->size() + 1});
      all->push_back({absl::StrCat("%d-%m-%y", time), all->size() - 1});
    }
    return all;
  }();
  return *formats;
}

std::optional<absl::CivilSecond> ReadFormat(absl::string_view text, size_t form) {
  constexpr int kFirstYear = 1900, kLastYear = 2200;
  absl::Time time;
  std::string why;
  if (!absl::ParseTime(Formats()[form].text, text, &time, &why)) return std::nullopt;
  const absl::CivilSecond civil = absl::ToCivilSecond(time, absl::UTCTimeZone());
  if (civil.year() < kFirstYear || civil.year() > kLastYear) return std::nullopt;
  return civil;
}

int64_t OrderOf(absl::CivilSecond civil) {
  int64_t order = civil.year();
  for (const int part :
       {civil.month(), civil.day(), civil.hour(), civil.minute(), civil.second()}) {
    order = order * 100 + part;
  }
  return order;
}

std::optional<int64_t> IsoOrder(absl::string_view text) {
  absl::Time time;
  std::string why;
  // With an offset from UTC, texts do not order as times do.
  if (text.size() > 19 && absl::ParseTime("%Y-%m-%d%ET%H:%M:%E*S%Ez", text, &time, &why)) {
    return OrderOf(absl::ToCivilSecond(time, absl::UTCTimeZone()));
  }
  constexpr size_t kDigits = 14;  // YYYYMMDDhhmmss
  std::string digits;
  for (const char c : text) {
    if (c == '.' || c == '+' || c == 'Z' || digits.size() == kDigits) break;
    if (absl::ascii_isdigit(c)) digits.push_back(c);
  }
  digits.resize(kDigits, '0');
  int64_t order = 0;
  return absl::SimpleAtoi(digits, &order) ? std::optional(order) : std::nullopt;
}

// The first and the last number of 24-05-31; nothing in other texts.
std::optional<std::pair<int, int>> EndsOfDate(absl::string_view text) {
  if (text.size() < 8 || text[2] != '-' || text[5] != '-') return std::nullopt;
  std::pair<int, int> ends;
  if (!absl::SimpleAtoi(text.substr(0, 2), &ends.first) ||
      !absl::SimpleAtoi(text.substr(6, 2), &ends.second) || ends.first < 0 || ends.second < 0) {
    return std::nullopt;
  }
  return ends;
}

}  // namespace

std::optional<unsigned> EpochUnit(double number) {
  constexpr double kFirst = 3e8, kLast = 2.2e9;
  double scale = 1;
  for (unsigned unit = 0; unit < 4; ++unit, scale *= 1000) {
    if (number >= kFirst * scale && number <= kLast * scale) return unit;
  }
  return std::nullopt;
}

TimeForms::Set TimeForms::Fitting(absl::string_view text, const Set& forms) {
  Set fitting;
  for (size_t form = 0; form < std::min(kMaxForms, Formats().size()); ++form) {
    fitting[form] = forms[form] &&
                    (form == TimeForm::kIso ? IsIsoDate(text) : ReadFormat(text, form).has_value());
  }
  return fitting;
}

void TimeForms::Add(absl::string_view text) {
  if (odd_ > kMaxOdd && kOddOneIn * odd_ > count_) return;  // others than times
  ++count_;
  if (!AddTime(PlainTime(text)) && odd_++ == 0) first_odd_ = std::string(text);
}

bool TimeForms::AddTime(absl::string_view text) {
  constexpr size_t kShortest = 6, kLongest = 40;
  if (const auto ends = EndsOfDate(text)) {
    first_.set(static_cast<size_t>(ends->first));
    last_.set(static_cast<size_t>(ends->second));
  }
  if (text.size() < kShortest || text.size() > kLongest ||
      text.find_first_of("0123456789") == absl::string_view::npos) {
    return false;
  }
  const bool has_month = absl::ascii_isdigit(text[0]) && absl::ascii_isalpha(text[2]);  // 31MAY24
  if (!has_month && text.find_first_of("/-. ,:_T") == absl::string_view::npos) {
    return false;
  }
  for (Set& set : possible_) {
    const Set fitting = Fitting(text, set);
    if (fitting.none()) continue;
    set = fitting;
    return true;
  }
  const Set fitting = Fitting(text, Set().set());
  if (fitting.none() || possible_.size() == kFormsMixed) return false;
  possible_.push_back(fitting);
  return true;
}

TimeForm TimeForms::form() const {
  constexpr size_t kDaysPerYear = 3;
  TimeForm form;
  std::vector<size_t> numbers;
  for (const Set& set : possible_) {
    size_t number = TimeForm::kIso;
    while (!set[number]) ++number;
    size_t partner = number == TimeForm::kIso ? 0 : Formats()[number].partner;
    const bool is_short = absl::StartsWith(Formats()[number].text, "%y-") ||
                          absl::StartsWith(Formats()[number].text, "%d-%m-%y");
    // Years are fewer than days: 24-05-01, 24-05-31.
    if (is_short && partner != 0 && set[partner] &&
        std::max(first_.count(), last_.count()) >=
            kDaysPerYear * std::min(first_.count(), last_.count())) {
      const bool year_first = first_.count() < last_.count();
      if (absl::StartsWith(Formats()[number].text, "%y-") != year_first) number = partner;
      partner = 0;
    }
    // Of two programs one may write the day first, and the other one the month.
    form.is_ambiguous |= partner != 0 && (set[partner] || std::find(numbers.begin(), numbers.end(),
                                                                    partner) != numbers.end());
    numbers.push_back(number);
  }
  if (numbers.empty()) return form;
  form.number = numbers.front();
  form.others.assign(numbers.begin() + 1, numbers.end());
  return form;
}

std::optional<int64_t> TimeOrder(absl::string_view text, const TimeForm& form) {
  const std::string plain = PlainTime(text);
  text = plain;
  double number = 0;
  int64_t order = 0;
  std::string digits;
  if (form.number == TimeForm::kEpochs) {
    if (ReadNumber(text, &number) != NumberKind::kFinite) return std::nullopt;
    const std::optional<unsigned> unit = EpochUnit(number);
    if (!unit) return std::nullopt;
    return static_cast<int64_t>(
        std::floor(number * std::pow(10.0, 6 - 3 * static_cast<int>(*unit))));
  }
  if (IntegerDigits(text, &digits) && absl::SimpleAtoi(digits, &order)) return order;
  if (ReadNumber(text, &number) == NumberKind::kFinite && std::abs(number) < 1e17) {
    return static_cast<int64_t>(std::floor(number));
  }
  std::vector<size_t> forms = {form.number};
  forms.insert(forms.end(), form.others.begin(), form.others.end());
  for (const size_t one : forms) {
    if (one == TimeForm::kIso) {
      if (IsIsoDate(text)) return IsoOrder(text);
    } else if (const auto civil = ReadFormat(text, one)) {
      return OrderOf(*civil);
    }
  }
  return std::nullopt;
}

}  // namespace cistern::data
