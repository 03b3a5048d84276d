#include "worker/data/prepare/label_choice.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

// The first name that the table has wins.
constexpr absl::string_view kUsualNames[] = {
    "label",         "click", "clicked",  "is_click",   "isclick",  "is_clicked", "clk",
    "target",        "y",     "class",    "outcome",    "response", "converted",  "conversion",
    "is_conversion", "buy",   "purchase", "is_purchase"};
constexpr size_t kNamesShown = 20;
constexpr char kRarer[] = "the rarer value";

// Holds both 0 and 1, and nothing else.
bool IsBinary(const ColumnProfile& column) {
  if (column.missing > 0 || column.values.empty()) return false;
  std::set<std::string> meanings;
  for (const auto& [text, count] : column.values) meanings.insert(LabelMeaning(text));
  return meanings == std::set<std::string>{"0", "1"};
}

constexpr absl::string_view kEventWords =
    "on + \xe2\x9c\x93 \xe2\x9c\x94 \xe2\x9c\x85 \xf0\x9f\x91\x8d "
    "one high h positive pos p click clicked clk klick success succeeded converted "
    "conversion convert buy bought purchase purchased buyer download downloaded install "
    "installed open opened watched win won like liked relevant active accept accepted "
    "approved good pass passed survived spam fraud churn churned default defaulted si "
    "\x73\xc3\xad oui vrai vero verdadero wahr ja sim evet tak igen ano \xd0\xb4\xd0\xb0 "
    "\xd0\x94\xd0\xb0 \xe6\x98\xaf \xe6\x9c\x89 \xe7\x82\xb9\xe5\x87\xbb "
    "\xe3\x81\xaf\xe3\x81\x84 \xec\x98\x88 \xeb\x84\xa4 ";
constexpr absl::string_view kOtherWords =
    "off - \xe2\x9c\x97 \xe2\x9c\x98 \xe2\x9d\x8c \xf0\x9f\x91\x8e "
    "zero low l negative neg n impression imp view viewed shown failure failed fail lose "
    "lost loss dislike disliked irrelevant inactive reject rejected declined ignore ignored "
    "dismiss dismissed uninstalled closed died bad ham normal legit legitimate genuine "
    "retained stayed skip skipped none non nein nej nie nee faux falso falsch "
    "\x68\x61\x79\xc4\xb1\x72 \x6e\xc3\xa3\x6f nao \xd0\xbd\xd0\xb5\xd1\x82 "
    "\xd0\x9d\xd0\xb5\xd1\x82 \xe5\x90\xa6 \xe6\x97\xa0 \xe6\x9b\x9d\xe5\x85\x89 "
    "\xe3\x81\x84\xe3\x81\x84\xe3\x81\x88 \xec\x95\x84\xeb\x8b\x88\xec\x98\xa4 "
    "\xec\x95\x84\xeb\x8b\x88\xec\x9a\x94 ";
constexpr absl::string_view kDenyingWords =
    "not no non un never without didn't don't kein keine nicht ohne pas sans sin senza niet "
    "geen \x6e\xc3\xa3\x6f \xd0\xbd\xd0\xb5\xd1\x82 \xd0\xbd\xd0\xb5 "
    "\xd0\x9d\xd0\xb5\xd1\x82 \xd0\x9d\xd0\xb5 \xd0\xb1\xd0\xb5\xd0\xb7 ";

bool IsOneOf(absl::string_view words, absl::string_view word) {
  const std::vector<absl::string_view> all = absl::StrSplit(words, ' ', absl::SkipEmpty());
  return std::find(all.begin(), all.end(), word) != all.end();
}

// Whether `text` denies `word`: "not clicked", "no_click", "non-buyer", "unsubscribed".
bool Denies(const std::string& text, const std::string& word) {
  for (const char* const no : {"not", "no", "non", "un", "dis", "in"}) {
    absl::string_view rest = text;
    if (!absl::ConsumePrefix(&rest, no)) continue;
    const bool glued = absl::string_view(no) != "in" || word.size() > 3;
    while (!rest.empty() && absl::StrContains(" _-", rest.front())) rest.remove_prefix(1);
    if (rest == word && glued) return true;
  }
  return false;
}

// Whether one of the words of a text denies: "did not click", "kein Klick".
bool HasDenial(const std::string& text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" _-"), absl::SkipEmpty());
  return words.size() > 1 && std::any_of(words.begin(), words.end(), [](absl::string_view word) {
           return IsOneOf(kDenyingWords, word);
         });
}

// Whether a word names the event, or the class that is looked for: 1; what it is told from: 0; -1:
// neither.
int PolarityOf(const std::string& word) {
  return IsOneOf(kEventWords, word) ? 1 : IsOneOf(kOtherWords, word) ? 0 : -1;
}

// The number in "label_1", "100%" or "1 (click)", with the text before and after it.
struct NumberInText {
  std::string before, digits, after;
};
std::optional<NumberInText> NumberIn(const std::string& text) {
  const size_t first = text.find_first_of("0123456789");
  if (first == std::string::npos) return std::nullopt;
  const size_t end = std::min(text.find_first_not_of("0123456789", first), text.size());
  return NumberInText{text.substr(0, first), text.substr(first, end - first), text.substr(end)};
}

// 1 if `a` is the larger one of two numbers in the same text, the part above a bound (">50K"), or 1
// of codes with names, "1: click" and "0: none"; 0 if `b` is; -1: neither.
int OrderOfNumbersIn(const std::string& a, const std::string& b) {
  if (absl::StartsWith(a, ">") && absl::StartsWith(b, "<")) return 1;
  if (absl::StartsWith(a, "<") && absl::StartsWith(b, ">")) return 0;
  const std::optional<NumberInText> first = NumberIn(a), second = NumberIn(b);
  if (!first || !second || first->before != second->before) return -1;
  uint64_t x = 0, y = 0;
  if (!absl::SimpleAtoi(first->digits, &x) || !absl::SimpleAtoi(second->digits, &y)) return -1;
  const bool codes = x + y == 1 && first->before.empty();
  return x == y || (first->after != second->after && !codes) ? -1 : x > y;
}

// The values of a column by meaning, in the order of the file: their texts and their number.
struct LabelValue {
  std::string meaning;
  std::vector<std::string> texts;
  uint64_t count = 0;
};
// Whether all values are words or numbers of truth: 1, 1.0, true, yes.
bool AreTruths(const ColumnProfile& column) {
  return std::all_of(column.values.begin(), column.values.end(), [](const auto& value) {
    const std::string meaning = TruthMeaning(value.first);
    return meaning == "0" || meaning == "1";
  });
}

std::vector<LabelValue> ValuesOf(const ColumnProfile& column) {
  std::vector<LabelValue> values;
  const bool truth = AreTruths(column);
  for (const auto& [text, count] : column.values) {
    const std::string meaning = truth ? TruthMeaning(text) : LabelMeaning(text);
    auto value = std::find_if(values.begin(), values.end(),
                              [&](const LabelValue& known) { return known.meaning == meaning; });
    if (value == values.end()) {
      value = values.emplace(values.end());
      value->meaning = meaning;
    }
    value->texts.push_back(text);
    value->count += count;
  }
  return values;
}

std::string Quoted(const std::vector<std::string>& names) {
  std::vector<std::string> shown(names.begin(),
                                 names.begin() + std::min(names.size(), kNamesShown));
  if (names.size() > shown.size()) shown.push_back("...");
  return absl::StrJoin(shown, ", ");
}

// Columns of two values, for the error.
std::vector<std::string> Candidates(const TableProfile& profile) {
  std::vector<std::string> names;
  for (const ColumnProfile& column : profile.columns) {
    if (column.values.size() == 2) names.push_back(column.name);
  }
  return names;
}

absl::StatusOr<size_t> NamedColumn(const TableProfile& profile, const std::string& name) {
  for (size_t i = 0; i < profile.columns.size(); ++i) {
    if (profile.columns[i].name == name) return i;
  }
  return WithOptions(absl::InvalidArgumentError(absl::StrCat(profile.path, ": there is no column '",
                                                             name, "'; the columns are ",
                                                             Quoted(profile.layout.columns))),
                     {"label"});
}

// Whether `a` is the positive one of two values. note: gets the rule, if it is a guess.
bool IsPositiveOf(const LabelValue& a, const LabelValue& b, std::string* rule) {
  const std::string first = TruthMeaning(a.meaning), second = TruthMeaning(b.meaning);
  if ((first == "1" && second == "0") || (first == "0" && second == "1")) return first == "1";
  double x = 0, y = 0;
  if (ReadNumber(a.meaning, &x) == NumberKind::kFinite &&
      ReadNumber(b.meaning, &y) == NumberKind::kFinite) {
    *rule = "the larger number";
    return x > y;
  }
  if (const int order = OrderOfNumbersIn(a.meaning, b.meaning); order >= 0) {
    *rule = "the larger number";
    return order == 1;
  }
  if (Denies(b.meaning, a.meaning)) return true;
  if (Denies(a.meaning, b.meaning)) return false;
  if (HasDenial(a.meaning) != HasDenial(b.meaning)) return HasDenial(b.meaning);
  const auto polarity = [](const LabelValue& value, const std::string& truth) {
    return truth == "1" ? 1 : truth == "0" ? 0 : PolarityOf(value.meaning);
  };
  const int of_first = polarity(a, first), of_second = polarity(b, second);
  if (of_first >= 0 && of_second >= 0 && of_first != of_second) return of_first > of_second;
  if ((of_first >= 0) != (of_second >= 0)) {
    *rule = "by what the words mean";
    return of_first == 1 || of_second == 0;
  }
  *rule = kRarer;
  return a.count < b.count;
}

// Whether a column has two values that say themselves which one is positive.
bool LooksLikeLabel(const ColumnProfile& column) {
  const std::vector<LabelValue> values = ValuesOf(column);
  std::string rule;
  if (values.size() != 2) return false;
  IsPositiveOf(values[0], values[1], &rule);
  return rule != kRarer;
}

// The column with the first of the usual names, but one that looks like a label before others:
// 'class' and 'target' can also be a kind of seat, or of people.
std::optional<size_t> ColumnOfUsualName(const TableProfile& profile) {
  std::optional<size_t> named;
  for (const absl::string_view usual : kUsualNames) {
    for (size_t i = 0; i < profile.columns.size(); ++i) {
      if (absl::AsciiStrToLower(profile.columns[i].name) != usual) continue;
      if (LooksLikeLabel(profile.columns[i])) return i;
      if (!named) named = i;
    }
  }
  return named;
}

absl::StatusOr<size_t> FindColumn(const TableProfile& profile, std::string* note) {
  std::vector<size_t> binary;
  for (size_t i = 0; i < profile.columns.size(); ++i) {
    if (IsBinary(profile.columns[i])) binary.push_back(i);
  }
  const std::optional<size_t> named = ColumnOfUsualName(profile);
  const bool is_kind = named && !LooksLikeLabel(profile.columns[*named]) &&
                       profile.columns[*named].values.size() == 2;
  if (named && (!is_kind || binary.empty())) {
    *note = "by its name";
    return *named;
  }
  if (!named && binary.size() == 1) {
    *note = "the only column of 0 and 1";
    return binary.front();
  }
  const std::vector<std::string> candidates = Candidates(profile);
  return WithOptions(
      absl::InvalidArgumentError(absl::StrCat(
          profile.path, ": which column is the label? ",
          named ? absl::StrCat("'", profile.columns[*named].name,
                               "' has the name of one, but holds two words, and ")
                : "None has a usual name (label, click, target, y), ",
          binary.empty()
              ? "and none holds 0 and 1 only"
              : absl::StrCat(binary.size(), binary.size() == 1 ? " column holds" : " hold",
                             " 0 and 1 only"),
          candidates.empty() ? absl::StrCat("; the columns are ", Quoted(profile.layout.columns))
                             : absl::StrCat("; columns of two values: ", Quoted(candidates)))),
      {"label"});
}

// "'-1' in 20 rows, '1' in 1 row", of at most eight values; else "".
std::string WithCounts(std::vector<LabelValue> values) {
  constexpr size_t kMaxShown = 8;
  if (values.size() > kMaxShown) return "";
  std::stable_sort(values.begin(), values.end(), [](const LabelValue& a, const LabelValue& b) {
    double x = 0, y = 0;
    const bool numbers = ReadNumber(a.meaning, &x) == NumberKind::kFinite &&
                         ReadNumber(b.meaning, &y) == NumberKind::kFinite;
    return numbers && x < y;
  });
  return absl::StrJoin(values, ", ", [](std::string* out, const LabelValue& value) {
    absl::StrAppend(out, "'", value.texts[0], "' in ", value.count,
                    value.count == 1 ? " row" : " rows");
  });
}

// Whether a value says that the label is not known.
bool IsUnknown(const LabelValue& value) {
  const absl::string_view words[] = {"unknown", "?", "n/a", "missing", "undefined", "pending"};
  return std::find(std::begin(words), std::end(words), value.meaning) != std::end(words);
}

// The values beside the two that nearly all rows have, or one that says that the label is not
// known:
// "'Total' in 1 row"; "" if there are none.
std::string OddValues(const TableProfile& profile, std::vector<LabelValue> values) {
  constexpr uint64_t kRowsPerOdd = 500;
  constexpr size_t kMaxShown = 3;
  if (values.size() < 3) return "";
  std::sort(values.begin(), values.end(),
            [](const LabelValue& a, const LabelValue& b) { return a.count > b.count; });
  const auto unknown = std::find_if(values.begin(), values.end(), IsUnknown);
  if (values.size() == 3 && unknown != values.end()) return WithCounts({*unknown});
  uint64_t rows = 0;
  std::vector<std::string> shown;
  for (size_t i = 2; i < values.size(); ++i) {
    rows += values[i].count;
    if (shown.size() < kMaxShown) shown.push_back(WithCounts({values[i]}));
  }
  return kRowsPerOdd * rows > profile.rows ? "" : absl::StrJoin(shown, ", ");
}

// Whether the values are -1, 0 and 1.
bool MayBeUnknown(const std::vector<LabelValue>& values) {
  return values.size() == 3 &&
         std::all_of(values.begin(), values.end(), [](const LabelValue& value) {
           return value.meaning == "-1" || value.meaning == "0" || value.meaning == "1";
         });
}

// A threshold to propose: the least value with at most half of the rows above it, as 3 of one to
// five stars, but not the largest one; the middle of the range if the values are not known.
double ProposedThreshold(const ColumnProfile& column) {
  std::map<double, uint64_t> rows;  // by value
  uint64_t above = 0;
  for (const auto& [text, count] : column.values) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) continue;
    rows[value] += count;
    above += count;
  }
  if (rows.size() < 2) return column.min + (column.max - column.min) / 2;
  const uint64_t half = above / 2;
  auto at = rows.begin();
  for (above -= at->second; above > half && std::next(at, 2) != rows.end(); above -= at->second) {
    ++at;
  }
  return at->first;
}

// Decides which of two values is positive.
absl::Status ChoosePositive(const TableProfile& profile, const ColumnProfile& column,
                            LabelChoice* label) {
  const std::vector<LabelValue> values = ValuesOf(column);
  if (values.size() != 2) {
    const std::string what = column.distinct <= ColumnProfile::kFewValues
                                 ? absl::StrCat(values.size())
                                 : absl::StrCat("about ", column.distinct);
    const std::string odd = OddValues(profile, values);
    if (!odd.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          profile.path, ": the label column '", column.name, "' has two values, but also ", odd,
          ": remove these rows, such as lines of totals or notes, or of labels that are not "
          "known"));
    }
    const std::string all = WithCounts(values);
    if (column.type == ColumnType::kInteger || column.type == ColumnType::kNumber) {
      return WithOptions(
          absl::InvalidArgumentError(absl::StrCat(
              profile.path, ": the label column '", column.name, "' has ", what, " values, not 2, ",
              all.empty() ? absl::StrCat("from ", column.min, " to ", column.max)
                          : absl::StrCat("which are ", all),
              MayBeUnknown(values) ? " (if 0 means that nothing is known, remove these rows)" : "",
              ": say above which number it is positive, or name the positive ones (ratings and "
              "amounts themselves cannot be predicted)")),
          {absl::StrCat("label_threshold=", ProposedThreshold(column)), "positive"});
    }
    if (values.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          profile.path, ": the label column '", column.name, "' has ", what,
          " values, and a click has two: name another column, or write one of 1 and 0"));
    }
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(
            profile.path, ": the label column '", column.name, "' has ", what, " values, not 2",
            all.empty() ? "" : ", which are ", all, ": name the positive ones")),
        {"positive"});
  }
  std::string rule;
  const bool first = IsPositiveOf(values[0], values[1], &rule);
  label->positive = values[first ? 0 : 1].texts;
  label->negative = values[first ? 1 : 0].texts;
  if (rule.empty()) return absl::OkStatus();
  absl::StrAppend(&label->note, label->note.empty() ? "" : "; ", "'", label->positive[0], "', ",
                  rule, ", is positive");
  return absl::OkStatus();
}

absl::Status CheckPositive(const TableProfile& profile, const ColumnProfile& column,
                           const LabelChoice& label) {
  for (const std::string& text : label.positive) {
    const auto has = [&](const auto& value) { return value.first == text; };
    const bool known =
        column.values.empty() || std::any_of(column.values.begin(), column.values.end(), has);
    if (known) continue;
    return WithOptions(
        absl::InvalidArgumentError(absl::StrCat(profile.path, ": the label column '", column.name,
                                                "' never holds '", text, "'")),
        {"positive"});
  }
  return absl::OkStatus();
}

// Makes negative what is not named as positive.
absl::Status ChooseNegative(const TableProfile& profile, const ColumnProfile& column,
                            LabelChoice* label) {
  const auto refuse = [&](const std::string& why) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(profile.path, ": the label column '",
                                                               column.name, "' ", why)),
                       {"positive"});
  };
  std::vector<LabelValue> others;
  for (LabelValue& value : ValuesOf(column)) {
    const bool is_positive =
        std::any_of(value.texts.begin(), value.texts.end(),
                    [&](const std::string& text) { return label->IsPositive(text); });
    if (!is_positive && IsUnknown(value)) {
      return refuse(absl::StrCat("is ", WithCounts({value}),
                                 ", which is neither positive nor negative: remove these rows"));
    }
    if (!is_positive) others.push_back(std::move(value));
  }
  for (const auto& [text, count] : column.values) {
    if (!label->IsPositive(text)) label->negative.push_back(text);
  }
  if (label->negative.empty() && !column.values.empty()) {
    return refuse("has no value that is not named as positive: there is nothing to learn");
  }
  const std::string shown = WithCounts(others);
  if (others.size() < 2 || shown.empty()) return absl::OkStatus();
  absl::StrAppend(&label->note, label->note.empty() ? "" : "; ", "negative: ", shown);
  return absl::OkStatus();
}

absl::Status CheckThreshold(const TableProfile& profile, const ColumnProfile& column,
                            double threshold, bool names_positive) {
  const auto refuse = [&](const std::string& why, std::vector<std::string> options) {
    return WithOptions(absl::InvalidArgumentError(absl::StrCat(profile.path, ": the label column '",
                                                               column.name, "' ", why)),
                       std::move(options));
  };
  if (!std::isfinite(threshold)) {
    return refuse("needs a finite number as its threshold", {"label_threshold"});
  }
  if (names_positive) {
    return refuse("is either cut at a number or has positive texts",
                  {"positive", "label_threshold"});
  }
  if (column.type != ColumnType::kInteger && column.type != ColumnType::kNumber) {
    return refuse(absl::StrCat("holds ", Word(column.type),
                               ", and a threshold is for numbers: name the positive values"),
                  {"positive"});
  }
  if (column.min > threshold || column.max <= threshold) {
    return refuse(absl::StrCat("is from ", column.min, " to ", column.max, ", so ",
                               column.min > threshold ? "every" : "no", " row is above ", threshold,
                               ": there is nothing to learn"),
                  {"label_threshold"});
  }
  return absl::OkStatus();
}

}  // namespace

bool LabelChoice::IsPositive(const std::string& text) const {
  if (threshold) {
    double number = 0;
    return ReadNumber(text, &number) == NumberKind::kFinite && number > *threshold;
  }
  return std::count(positive.begin(), positive.end(), text) > 0;
}

absl::StatusOr<LabelChoice> ChooseLabel(const TableProfile& profile, const std::string& name,
                                        const std::vector<std::string>& positive,
                                        std::optional<double> threshold) {
  LabelChoice label;
  if (name.empty()) {
    CISTERN_ASSIGN_OR_RETURN(label.column, FindColumn(profile, &label.note));
  } else {
    CISTERN_ASSIGN_OR_RETURN(label.column, NamedColumn(profile, name));
  }
  const ColumnProfile& column = profile.columns[label.column];
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat(profile.path, ": the label column '", column.name, "' ", why));
  };
  if (column.missing > 0 && ValuesOf(column).size() == 1) {
    return refuse(absl::StrCat("is '", column.values[0].first, "' or has no value (in ",
                               column.missing, " of ", profile.rows,
                               " rows): if a label without a value means that nothing happened, "
                               "write 0 there; there is nothing to learn from one class"));
  }
  if (column.missing > 0) {
    const std::string where =
        absl::StrCat("has no value in ", column.missing, " of ", profile.rows, " rows");
    const bool is_of_event = column.type == ColumnType::kTime ||
                             (column.type == ColumnType::kText && column.values.empty());
    if (is_of_event) {  // such as the time of the click
      return refuse(absl::StrCat(where,
                                 ", and many values in the others: if these are the rows in "
                                 "which the event happened, write a column of 1 there and 0 "
                                 "in the others, and leave this one out"));
    }
    return refuse(absl::StrCat(where, ": remove these rows"));
  }
  if (column.distinct < 2 || ValuesOf(column).size() == 1) {
    return refuse(
        absl::StrCat("is '", column.values[0].first, "' in every row: there is nothing to learn"));
  }
  if (threshold) {
    CISTERN_RETURN_IF_ERROR(CheckThreshold(profile, column, *threshold, !positive.empty()));
    label.threshold = threshold;
    absl::StrAppend(&label.note, label.note.empty() ? "" : "; ", "above ", *threshold,
                    " is positive");
    return label;
  }
  label.positive = positive;
  if (positive.empty()) {
    CISTERN_RETURN_IF_ERROR(ChoosePositive(profile, column, &label));
  } else {
    CISTERN_RETURN_IF_ERROR(CheckPositive(profile, column, label));
    CISTERN_RETURN_IF_ERROR(ChooseNegative(profile, column, &label));
  }
  return label;
}

double ShareOfPositives(const TableProfile& profile, const LabelChoice& label) {
  uint64_t positives = 0, all = 0;
  for (const auto& [text, count] : profile.columns[label.column].values) {
    all += count;
    if (label.IsPositive(text)) positives += count;
  }
  if (all == 0) {
    all = profile.sample.size();
    for (const std::vector<std::string>& row : profile.sample) {
      positives += label.IsPositive(row[label.column]) ? 1 : 0;
    }
  }
  return all == 0 ? 0 : static_cast<double>(positives) / static_cast<double>(all);
}

uint64_t RowsOfRarerLabel(const TableProfile& profile, const LabelChoice& label) {
  const double share = ShareOfPositives(profile, label);
  if (share <= 0 || share >= 1) return profile.rows;
  const double rarer = std::min(share, 1 - share) * static_cast<double>(profile.rows);
  return static_cast<uint64_t>(std::llround(rarer));
}

}  // namespace cistern::data
