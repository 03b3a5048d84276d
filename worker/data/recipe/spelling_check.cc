#include "worker/data/recipe/spelling_check.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/shown_text.h"
#include "worker/data/recipe/field_values.h"
#include "worker/data/recipe/value_text.h"

namespace cistern {
namespace {

constexpr uint64_t kRowsMost = 20000;
constexpr uint64_t kValuesLeast = 20;
constexpr uint64_t kOneInMost = 20;  // of a slot's values

// Without spaces around it, those that do not break a line included.
absl::string_view WithoutSpaces(absl::string_view text) {
  for (size_t before = text.size() + 1; before != text.size();) {
    before = text.size();
    text = absl::StripAsciiWhitespace(text);
    for (const char* const space : {"\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x8b", "\xef\xbb\xbf"}) {
      absl::ConsumePrefix(&text, space);
      absl::ConsumeSuffix(&text, space);
    }
  }
  return text;
}

// Without what programs put around a value: spaces, brackets, quotes, b'x', ="x", 'x.
absl::string_view Bare(absl::string_view text) {
  text = InsideBrackets(WithoutSpaces(text));
  for (const char* const mark : {"b'", "b\"", "=\""}) {
    if (absl::StartsWith(text, mark)) text.remove_prefix(1);
  }
  const absl::string_view unquoted = WithoutQuotes(text);
  if (unquoted.size() == text.size()) absl::ConsumePrefix(&text, "'");
  return WithoutSpaces(unquoted.size() < text.size() ? unquoted : text);
}

std::string Capitalized(absl::string_view text) {
  std::string capitalized = absl::AsciiStrToLower(text);
  if (!capitalized.empty()) capitalized[0] = absl::ascii_toupper(capitalized[0]);
  return capitalized;
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
  if (rows_++ >= kRowsMost) return;
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

void SpellingCheck::AddValue(absl::string_view value, size_t slot) {
  Slot& seen = slots_[slot];
  ++seen.values;
  if (Knows(value, slot)) return;
  const std::string known = KnownAs(value, slot);
  if (!known.empty()) {
    if (seen.spelled++ > 0) return;
    seen.spelling = std::string(value);
    seen.known = known;
    return;
  }
  const std::string part = FirstKnownPart(value, slot);
  if (part.empty() || seen.parted++ > 0) return;
  seen.joined = std::string(value);
  seen.one_part = part;
}

bool SpellingCheck::Knows(absl::string_view value, size_t slot) {
  return !value.empty() && encoder_.Knows(value, slot, &work_);
}

std::string SpellingCheck::KnownAs(absl::string_view value, size_t slot) {
  const absl::string_view bare = Bare(value);
  std::vector<std::string> ways = {std::string(bare)};
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
  const auto known = std::find_if(ways.begin(), ways.end(),
                                  [&](const std::string& way) { return Knows(way, slot); });
  return known == ways.end() ? "" : *known;
}

std::string SpellingCheck::FirstKnownPart(absl::string_view value, size_t slot) {
  const absl::string_view list = InsideBrackets(WithoutSpaces(value));
  for (const char separator : {',', ';', '|', '/', '\t', ' '}) {
    if (!absl::StrContains(list, separator)) continue;
    std::vector<std::string> parts;
    for (absl::string_view rest = list; !rest.empty();) {
      absl::string_view part = Bare(TakeValue(separator, /*list=*/true, &rest));
      double weight = 0;
      if (!Knows(part, slot)) RemoveWeight(&part, &weight);
      if (!part.empty()) parts.emplace_back(Bare(part));
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
    const uint64_t other = seen.spelled + seen.parted;
    if (other < kValuesLeast || kOneInMost * other < seen.values) continue;
    const double percent = 100 * static_cast<double>(other) / static_cast<double>(seen.values);
    sentences[s] = absl::StrFormat(
        "slot '%s': the model does not know %.0f %% of its values as they are written, such as ",
        slot.column, percent);
    if (seen.parted > seen.spelled) {
      absl::StrAppend(&sentences[s], QuotedValue(seen.joined),
                      ", but knows the values in them, such as ", QuotedValue(seen.one_part), ": ",
                      slot.separator
                          ? absl::StrCat("write ", QuotedValue(std::string(1, *slot.separator)),
                                         " between them")
                          : "a field holds one value",
                      ", as in the training data");
    } else {
      absl::StrAppend(&sentences[s], QuotedValue(seen.spelling), ", but knows ",
                      QuotedValue(seen.known), ": write them as in the training data");
    }
  }
  return sentences;
}

}  // namespace cistern
