#include "worker/data/recipe/spelling_check.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/shown_text.h"
#include "worker/data/recipe/field_values.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr uint64_t kMaxRows = 20000;
constexpr uint64_t kMinValues = 20;
constexpr uint64_t kMaxOneIn = 20;  // of a slot's values
constexpr size_t kMaxForms = 64;

// Without a bracket that opens a list of which this is the first value, or closes it.
absl::string_view WithoutOneBracket(absl::string_view text) {
  for (const char* const pair : {"[]", "()", "{}"}) {
    const bool opens = absl::StrContains(text, pair[0]), closes = absl::StrContains(text, pair[1]);
    if (opens && !closes) absl::ConsumePrefix(&text, absl::string_view(pair, 1));
    if (closes && !opens) absl::ConsumeSuffix(&text, absl::string_view(pair + 1, 1));
  }
  return text;
}

// Without what programs put around a value: spaces, brackets, quotes, b'x', ="x", 'x.
std::string Bare(absl::string_view value) {
  const std::string plain = WithPlainSpaces(value);
  absl::string_view text = WithoutOneBracket(InsideBrackets(plain));
  for (const char* const mark : {"b'", "b\"", "=\""}) {
    if (absl::StartsWith(text, mark)) text.remove_prefix(1);
  }
  const absl::string_view unquoted = WithoutQuotes(text);
  if (unquoted.size() == text.size()) absl::ConsumePrefix(&text, "'");
  absl::ConsumePrefix(&text, "#");
  return WithPlainSpaces(unquoted.size() < text.size() ? unquoted : text);
}

std::string Capitalized(absl::string_view text) {
  std::string capitalized = absl::AsciiStrToLower(text);
  if (!capitalized.empty()) capitalized[0] = absl::ascii_toupper(capitalized[0]);
  return capitalized;
}

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

bool AreDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

// "1,047" without its separators; "": it has none, or not after every third digit.
std::string Ungrouped(absl::string_view text) {
  const size_t first = text.find_first_not_of("0123456789");
  if (first == 0 || first > 3 || first == absl::string_view::npos) return "";
  const char separator = text[first];
  if (!absl::StrContains(",. '_", separator)) return "";
  const std::vector<absl::string_view> groups = absl::StrSplit(text, separator);
  const bool are_groups = std::all_of(groups.begin() + 1, groups.end(), [](absl::string_view one) {
    return one.size() == 3 && AreDigits(one);
  });
  return are_groups ? absl::StrJoin(groups, "") : "";
}

// The text with one 0 for digits in a row and one a for letters: "u1047" is "a0".
std::string FormOf(absl::string_view text) {
  constexpr size_t kMaxBytes = 40;
  std::string form;
  for (const char c : text.substr(0, kMaxBytes)) {
    const char kind = IsDigit(c)                                           ? '0'
                      : absl::ascii_isalpha(static_cast<unsigned char>(c)) ? 'a'
                                                                           : c;
    const bool is_repeated = (kind == '0' || kind == 'a') && !form.empty() && form.back() == kind;
    if (!is_repeated) form += kind;
  }
  return form;
}

std::string QuotedValue(absl::string_view text) {
  return absl::StrCat("'", ShownText(text, 40), "'");
}

}  // namespace

SpellingCheck::SpellingCheck(const RowEncoder& encoder)
    : encoder_(encoder), work_(encoder.NewWork()), slots_(encoder.recipe().slots.size()) {
  for (size_t s = 0; s < slots_.size(); ++s) {
    const Recipe::Slot& slot = encoder.recipe().slots[s];
    slots_[s].is_read =
        slot.cross.empty() && !slot.bucket && encoder.recipe().vocabulary_xxh3.has_value();
  }
}

void SpellingCheck::Add(const std::vector<absl::string_view>& fields, const RowPlaces& places) {
  if (rows_++ >= kMaxRows) return;
  for (size_t s = 0; s < slots_.size(); ++s) {
    if (!slots_[s].is_read) continue;
    ForEachValue(fields[places.slots[s].front()], encoder_.recipe().slots[s],
                 [&](absl::string_view value) {
                   if (!IsUsuallyMissing(value)) AddValue(value, s);
                   return absl::OkStatus();
                 })
        .IgnoreError();
  }
}

void SpellingCheck::Finding::Add(absl::string_view value, const std::string& known_as) {
  if (values++ > 0) return;
  spelling = std::string(value);
  known = known_as;
}

void SpellingCheck::AddValue(absl::string_view value, size_t slot) {
  Slot& seen = slots_[slot];
  ++seen.values;
  if (Knows(value, slot)) {
    if (seen.known_forms.size() < kMaxForms) seen.known_forms.insert(FormOf(value));
    return;
  }
  std::string known = FirstKnown(Spellings(value), slot);
  if (!known.empty()) return seen.spelled.Add(value, known);
  known = FirstKnownPart(value, slot);
  if (!known.empty()) return seen.parted.Add(value, known);
  known = FirstKnown(OtherForms(Bare(value), encoder_.recipe().slots[slot].column), slot);
  const std::string form = FormOf(value);
  if (!known.empty() && (seen.formed.size() < kMaxForms || seen.formed.count(form) > 0)) {
    seen.formed[form].Add(value, known);
  }
}

bool SpellingCheck::Knows(absl::string_view value, size_t slot) {
  return !value.empty() && encoder_.Knows(value, slot, &work_);
}

std::string SpellingCheck::FirstKnown(const std::vector<std::string>& ways, size_t slot) {
  const auto known = std::find_if(ways.begin(), ways.end(),
                                  [&](const std::string& way) { return Knows(way, slot); });
  return known == ways.end() ? "" : *known;
}

std::vector<std::string> SpellingCheck::Spellings(absl::string_view value) {
  const std::string bare = Bare(value);
  std::vector<std::string> ways = {bare};
  double weight = 0;
  absl::string_view unweighted = bare;
  if (RemoveWeight(&unweighted, &weight)) ways.emplace_back(Bare(unweighted));
  std::string digits;
  if (IntegerDigits(bare, &digits)) {
    ways.push_back(digits);
    ways.push_back(digits.substr(std::min(digits.find_first_not_of('0'), digits.size())));
  }
  ways.push_back(absl::AsciiStrToLower(bare));
  ways.push_back(absl::AsciiStrToUpper(bare));
  ways.push_back(Capitalized(bare));
  return ways;
}

std::vector<std::string> SpellingCheck::OtherForms(absl::string_view value,
                                                   absl::string_view column) {
  std::vector<std::string> forms = {Ungrouped(value)};
  absl::string_view hexadecimal = value;
  const bool is_marked =
      absl::ConsumePrefix(&hexadecimal, "0x") || absl::ConsumePrefix(&hexadecimal, "0X");
  uint64_t number = 0;
  if ((is_marked || !AreDigits(value)) && absl::SimpleHexAtoi(hexadecimal, &number)) {
    forms.push_back(absl::StrCat(number));
  }
  const size_t mark = value.find_last_of(":=/_-");
  if (mark != absl::string_view::npos) forms.emplace_back(value.substr(mark + 1));  // user:u1047
  const size_t letter = value.find_last_not_of("0123456789");
  if (letter != absl::string_view::npos) {
    forms.emplace_back(value.substr(letter + 1));  // u1047
    return forms;
  }
  if (!absl::SimpleAtoi(value, &number)) return forms;
  forms.push_back(absl::StrFormat("0x%x", number));
  absl::ConsumeSuffix(&column, "id");
  absl::ConsumeSuffix(&column, "_");
  for (const char* const between : {"", "_", "-", ":", "="}) {
    forms.push_back(absl::StrCat(column, between, value));
    forms.push_back(absl::StrCat(column.substr(0, 1), between, value));
  }
  return forms;
}

std::string SpellingCheck::FirstKnownPart(absl::string_view value, size_t slot) {
  const std::string plain = WithPlainSpaces(value);
  const absl::string_view list = InsideBrackets(plain);
  for (const char separator : absl::string_view(",;|/\t\n ^+&$#*~_-.:")) {
    if (!absl::StrContains(list, separator)) continue;
    std::vector<std::string> parts;
    for (absl::string_view rest = list; !rest.empty();) {
      const std::string bare = Bare(TakeValue(separator, /*list=*/true, &rest));
      absl::string_view part = bare;
      double weight = 0;
      if (!Knows(part, slot)) RemoveWeight(&part, &weight);
      if (!part.empty()) parts.push_back(Bare(part));
    }
    const bool all = std::all_of(parts.begin(), parts.end(),
                                 [&](const std::string& part) { return Knows(part, slot); });
    if (parts.size() > 1 && all) return parts.front();
  }
  return "";
}

std::vector<std::string> SpellingCheck::Sentences() const {
  std::vector<std::string> sentences(slots_.size());
  for (size_t s = 0; s < slots_.size(); ++s) {
    const Slot& seen = slots_[s];
    const Recipe::Slot& slot = encoder_.recipe().slots[s];
    Finding spelled = seen.spelled;
    for (const auto& [form, formed] : seen.formed) {
      if (seen.known_forms.count(form) > 0) continue;
      const uint64_t both = spelled.values + formed.values;
      if (formed.values > spelled.values) spelled = formed;
      spelled.values = both;
    }
    const uint64_t other = spelled.values + seen.parted.values;
    if (other < kMinValues || kMaxOneIn * other < seen.values) continue;
    const double percent = 100 * static_cast<double>(other) / static_cast<double>(seen.values);
    sentences[s] = absl::StrFormat(
        "slot '%s': the model does not know %.0f %% of its values as they are written, such as ",
        slot.column, percent);
    if (seen.parted.values > spelled.values) {
      absl::StrAppend(
          &sentences[s], QuotedValue(seen.parted.spelling),
          ", but knows the values in them, such as ", QuotedValue(seen.parted.known), ": ",
          slot.separator ? absl::StrCat("write ", QuotedValue(std::string(1, *slot.separator)),
                                        " between them")
                         : "a field holds one value",
          ", as in the training data");
    } else {
      absl::StrAppend(&sentences[s], QuotedValue(spelled.spelling), ", but knows ",
                      QuotedValue(spelled.known), ": write them as in the training data");
    }
  }
  return sentences;
}

}  // namespace cistern::data
