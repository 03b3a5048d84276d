#include "worker/data/prepare/list_form.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "worker/data/recipe/field_values.h"
#include "worker/data/recipe/text_table.h"

namespace cistern::data {
namespace {

// Separators that hardly occur for another reason, and those that do.
constexpr char kClearSeparators[] = {'|', ';'};
constexpr char kOtherSeparators[] = {'\x01', '\x02', '\x1d', '\x1e', '\x1f', '\t',
                                     '^',    ',',    '#',    '~',    '&',    ' '};
// Separators with a space at either side, which may occur inside values otherwise: Home & Garden >
// Tools.
constexpr char kSpacedSeparators[] = {'>', '/', '+', '*', '&'};
// Separators of paths and times, too: of lists, fields hold different numbers of values.
constexpr char kVariedSeparators[] = {'/', '>', '\n', '+', ':', '*', '$', '%', '@', '!', '\\'};
// Separators within names, dates and codes: of lists, moreover, most fields are new, so that as
// whole texts they tell nothing, and each value is in many of them.
constexpr char kNameSeparators[] = {'_', '-', '.'};
constexpr double kMinNewTexts = 0.4;      // distinct ones by fields
constexpr size_t kUsesOfNamed = 20;       // of a value on average
constexpr double kMinSeveral = 0.2;       // of the fields hold several values
constexpr double kSeveralAtAll = 0.05;    // likewise, if values recombine
constexpr size_t kMinCounts = 3;          // different numbers of values in a field
constexpr double kFieldsPerCount = 0.05;  // share of the fields with such a number
constexpr double kMinBrackets = 0.95;
constexpr double kValuesPerText = 0.5;  // distinct ones, at most, for the other separators
constexpr size_t kMinUses = 5;          // of a value on average, likewise

using ListForm = ConvertOptions::ListForm;

bool RemoveUsualWeight(absl::string_view* value, double* weight) {
  return RemoveWeight(':', value, weight) || RemoveWeight('=', value, weight) ||
         RemoveWeight('(', value, weight);
}

// Whether a text begins as (a, 0.5) does, and does not end so.
bool IsOpenPair(absl::string_view value) {
  value = absl::StripLeadingAsciiWhitespace(value);
  return (absl::StartsWith(value, "(") && !absl::StrContains(value, ')')) ||
         (absl::StartsWith(value, "[") && !absl::StrContains(value, ']'));
}

// A list that the sample has cut off, without the brackets that begin it.
absl::string_view WithoutOpening(absl::string_view field) {
  const size_t call = std::max(OpensCall(field), OpensNamedList(field));
  field = absl::StripLeadingAsciiWhitespace(field.substr(call));
  const bool opens = absl::StrContains("([{", field.substr(0, 1));
  const bool holds_pairs =
      absl::StrContains(field, "),") && !absl::StrContains("([{", field.substr(1, 1));
  if (opens && !holds_pairs) field.remove_prefix(1);
  return field;
}

// How the fields of a column look as lists of a form.
struct Look {
  size_t fields = 0, several = 0;
  size_t values = 0, weighted = 0, plain_weights = 0;
  size_t other_weighted = 0, other_plain = 0;  // ReadOtherWeight
  std::map<std::string, size_t> distinct;
  std::map<size_t, size_t> counts;  // fields by the number of their values
};

Look LookAs(const std::vector<absl::string_view>& fields, const ListForm& form) {
  Look look;
  for (absl::string_view field : fields) {
    ++look.fields;
    const bool cut = (form.list || form.weights) && field.size() >= TableProfile::kSampleText;
    if (form.list && cut) field = WithoutOpening(field);
    if (form.list && !cut) field = InsideBrackets(field, form.weights);
    size_t values = 0;
    while (!field.empty()) {
      absl::string_view value = TakeValue(form.separator, form.list, &field, form.weights);
      if (cut && values > 0 && (field.empty() || IsOpenPair(value))) break;  // it is not whole
      double weight = 0;
      const absl::string_view whole = value;
      OtherWeight other;
      if (RemoveUsualWeight(&value, &weight)) {
        ++look.weighted;
        // 10:30 is a time of day, 1:2 may be anything, and page=2 is a value.
        const bool equation = whole.size() > value.size() && whole[value.size()] == '=';
        const bool plain =
            (IsInteger(value) || equation) && !absl::StrContains(whole.substr(value.size()), '.');
        look.plain_weights += plain;
      } else if (form.weights && ReadOtherWeight(whole, &other)) {
        value = other.value;
        ++look.other_weighted;
        look.other_plain += other.is_plain;
      }
      if (form.list) value = WithoutQuotes(form.weights ? value : whole);
      if (!form.list && !form.weights) value = whole;
      if (value.empty()) continue;
      ++values;
      ++look.distinct[std::string(value)];
    }
    look.values += values;
    ++look.counts[values];
    look.several += values > 1;
  }
  return look;
}

// The same with weights, if all values have them.
Look LookAtValues(const std::vector<absl::string_view>& fields, ListForm* form) {
  constexpr size_t kPlainOneIn = 5, kTimesFewer = 2;
  const Look look = LookAs(fields, *form);
  form->weights = true;
  const Look with = LookAs(fields, *form);
  if (look.weighted > 0 && look.weighted >= look.values && look.plain_weights < look.values) {
    return with;
  }
  // In other forms they are believed if they hide what comes back. The last text may be cut off.
  const bool are_all =
      with.other_weighted > 0 && 100 * (with.other_weighted + with.weighted) >= 99 * with.values;
  if (are_all && kPlainOneIn * with.other_plain <= with.values &&
      kTimesFewer * with.distinct.size() <= look.distinct.size()) {
    return with;
  }
  form->weights = false;
  return look;
}

// Whether all texts with a comma are numbers: 3,14 or 1,234,567 or, in India, 12,34,567.
bool AreNumbersWithCommas(const std::vector<absl::string_view>& fields) {
  bool one_comma = true, thousands = true, indian = true;
  for (const absl::string_view field : fields) {
    const size_t comma = field.find(',');
    if (comma == absl::string_view::npos) {
      one_comma = one_comma && IsFiniteNumber(field);
      thousands = thousands && IsFiniteNumber(field);
      indian = indian && thousands;
      continue;
    }
    const absl::string_view before = field.substr(0, comma), after = field.substr(comma + 1);
    one_comma = one_comma && IsInteger(before) && IsInteger(after) && after[0] != '-';
    for (size_t i = comma, next = 0; i < field.size() && field[i] == ','; i = next) {
      next = std::min(field.find_first_of(",.", i + 1), field.size());
      const bool last = next == field.size() || field[next] == '.';
      thousands = thousands && next - i == 4;
      indian = indian && next - i == (last ? 4 : 3);
    }
  }
  return one_comma || thousands || indian;
}

class ListFinder {
 public:
  ListFinder(const TableProfile& profile, size_t column) {
    for (const std::vector<std::string>& row : profile.sample) {
      if (!row[column].empty()) fields_.push_back(row[column]);
    }
    for (const absl::string_view field : fields_) ++texts_[std::string(field)];
  }

  std::optional<ListForm> Find(char separator) const {
    if (fields_.empty()) return std::nullopt;
    if (std::optional<ListForm> form = InBrackets(separator)) return form;
    if (separator != 0) {
      ListForm form{separator};
      LookAtValues(fields_, &form);
      return form;
    }
    for (const char one : kClearSeparators) {
      if (!IsCommon(one)) continue;
      ListForm form{one};
      const Look look = LookAtValues(fields_, &form);
      const bool fewer = look.distinct.size() < texts_.size();
      if (fewer && HasSeveral(look, Recombine(look) ? kSeveralAtAll : kMinSeveral)) return form;
    }
    for (const char one : kSpacedSeparators) {
      if (!IsCommon(one) || !IsSpaced(one)) continue;
      ListForm form{one, /*list=*/true};
      const Look look = LookAtValues(fields_, &form);
      if (HasSeveral(look, kSeveralAtAll) && Recombine(look)) return form;
    }
    for (const char one : kOtherSeparators) {
      if (!IsCommon(one) || (one == ',' && AreNumbersWithCommas(fields_))) continue;
      ListForm form{one, /*list=*/one == ',' || one == ' '};
      const Look look = LookAtValues(fields_, &form);
      if (HasSeveral(look, kSeveralAtAll) && Recombine(look)) return form;
    }
    for (const char one : kVariedSeparators) {
      if (!IsCommon(one)) continue;
      const ListForm form{one};
      const Look look = LookAs(fields_, form);
      if (HasSeveral(look, kMinSeveral) && Recombine(look) && CountsVary(look)) return form;
    }
    for (const char one : kNameSeparators) {
      if (!IsCommon(one) || !AreNew()) continue;
      const ListForm form{one};
      const Look look = LookAs(fields_, form);
      const bool often = look.values >= kUsesOfNamed * look.distinct.size();
      if (often && HasSeveral(look, kMinSeveral) && Recombine(look) && CountsVary(look) &&
          (one != '.' || !AreNumbers(look))) {
        return form;
      }
    }
    return std::nullopt;
  }

 private:
  // Whether most fields are a new text.
  bool AreNew() const {
    return static_cast<double>(texts_.size()) >= kMinNewTexts * static_cast<double>(fields_.size());
  }
  // Whether most values are numbers, as those of versions and addresses are.
  static bool AreNumbers(const Look& look) {
    size_t numbers = 0;
    for (const auto& [value, count] : look.distinct) numbers += IsInteger(value);
    return 2 * numbers > look.distinct.size();
  }
  // Whether enough fields can hold several values with this separator.
  bool IsCommon(char separator) const {
    const auto holds = [&](absl::string_view field) {
      return field.find(separator) != absl::string_view::npos;
    };
    const auto count = std::count_if(fields_.begin(), fields_.end(), holds);
    return static_cast<double>(count) >= kSeveralAtAll * static_cast<double>(fields_.size());
  }
  // Whether nearly all fields with this separator have spaces around it.
  bool IsSpaced(char separator) const {
    const std::string spaced = absl::StrFormat(" %c ", separator);
    size_t with = 0, with_spaces = 0;
    for (const absl::string_view field : fields_) {
      with += absl::StrContains(field, separator);
      with_spaces += absl::StrContains(field, spaced);
    }
    return static_cast<double>(with_spaces) >= kMinBrackets * static_cast<double>(with);
  }
  static bool HasSeveral(const Look& look, double least) {
    return static_cast<double>(look.several) >= least * static_cast<double>(look.fields);
  }
  bool Recombine(const Look& look) const {
    return static_cast<double>(look.distinct.size()) <=
               kValuesPerText * static_cast<double>(texts_.size()) &&
           look.values >= kMinUses * look.distinct.size();
  }
  static bool CountsVary(const Look& look) {
    const double least = kFieldsPerCount * static_cast<double>(look.fields);
    const auto is_usual = [&](const auto& one) { return static_cast<double>(one.second) >= least; };
    return std::count_if(look.counts.begin(), look.counts.end(), is_usual) >=
           static_cast<ptrdiff_t>(kMinCounts);
  }

  // Texts of the sample may be cut off at the end.
  std::optional<ListForm> InBrackets(char separator) const {
    size_t brackets = 0, commas = 0, bars = 0, pairs = 0, rounds = 0;
    for (const absl::string_view field : fields_) {
      const bool cut = field.size() >= TableProfile::kSampleText;
      const absl::string_view inside = InsideBrackets(field);
      const bool opens = absl::StrContains("[({", field.substr(0, 1)) || OpensCall(field) > 0 ||
                         OpensNamedList(field) > 0;
      brackets += (cut && opens) || inside.size() + 2 <= absl::StripAsciiWhitespace(field).size();
      commas += absl::StrContains(inside, ',');
      bars += absl::StrContains(inside, '|');
      pairs += absl::StrContains(inside, "][");
      rounds += absl::StrContains(inside, ")(");
    }
    if (static_cast<double>(brackets) < kMinBrackets * static_cast<double>(fields_.size())) {
      return std::nullopt;
    }
    // Without a separator, as in [27], a comma is as good as any; NumPy prints spaces.
    const bool spaces = commas == 0 && std::any_of(fields_.begin(), fields_.end(), [](auto field) {
                          return absl::StrContains(InsideBrackets(field), ' ');
                        });
    // A pair of brackets for each value: [a][b].
    const bool is_pair = separator == 0 && commas == 0 && pairs + rounds > 0;
    if (is_pair) return ListForm{pairs > 0 ? ']' : ')'};
    ListForm form{separator != 0 ? separator
                  : commas > 0   ? ','
                  : bars > 0     ? '|'
                  : spaces       ? ' '
                                 : ',',
                  /*list=*/true};
    LookAtValues(fields_, &form);
    return form;
  }

  std::vector<absl::string_view> fields_;
  std::map<std::string, size_t> texts_;
};

}  // namespace

std::optional<ListForm> FindListForm(const TableProfile& profile, size_t column, char separator) {
  return ListFinder(profile, column).Find(separator);
}

char FindWeightMark(const TableProfile& profile, size_t column,
                    const ConvertOptions::ListForm& form) {
  for (const char mark : {':', '=', '('}) {
    for (const std::vector<std::string>& row : profile.sample) {
      absl::string_view field = form.list ? InsideBrackets(row[column]) : row[column];
      while (!field.empty()) {
        absl::string_view value = TakeValue(form.separator, form.list, &field);
        double weight = 0;
        if (RemoveWeight(mark, &value, &weight)) return mark;
      }
    }
  }
  return ':';
}

bool HasOtherWeights(const TableProfile& profile, size_t column,
                     const ConvertOptions::ListForm& form) {
  size_t usual = 0, others = 0;
  for (const std::vector<std::string>& row : profile.sample) {
    absl::string_view field = form.list ? InsideBrackets(row[column], /*pairs=*/true) : row[column];
    while (!field.empty()) {
      absl::string_view value = TakeValue(form.separator, form.list, &field, /*pairs=*/true);
      double weight = 0;
      OtherWeight other;
      if (RemoveUsualWeight(&value, &weight)) {
        ++usual;
      } else if (ReadOtherWeight(value, &other) && !other.is_plain) {
        ++others;
      }
    }
  }
  return others > usual;
}

std::string NoteOf(const ConvertOptions::ListForm& form) {
  const std::string name = form.separator == ' '    ? "spaces"
                           : form.separator == '\t' ? "tabs"
                           : form.separator == '\n' ? "line ends"
                           : absl::ascii_iscntrl(static_cast<unsigned char>(form.separator))
                               ? absl::StrFormat("\\x%02x", form.separator)
                               : std::string(1, form.separator);
  return absl::StrCat("several values, separated by ", name,
                      form.weights ? "; their weights are not used unless they are asked for" : "");
}

bool HoldsVectors(const TableProfile& profile, size_t column,
                  const ConvertOptions::ListForm& form) {
  size_t values = 0, fractions = 0;
  for (const std::vector<std::string>& row : profile.sample) {
    absl::string_view field = form.list ? InsideBrackets(row[column]) : row[column];
    // Of a text that is cut off, the last value is not whole.
    const bool cut = row[column].size() >= TableProfile::kSampleText;
    if (cut && form.list && field.find_first_of("[({") == 0) field.remove_prefix(1);
    while (!field.empty()) {
      const absl::string_view value = TakeValue(form.separator, form.list, &field);
      if (value.empty() || (cut && field.empty())) continue;
      ++values;
      fractions += IsFiniteNumber(value) && !IsInteger(value);
    }
  }
  return values > 0 && 10 * fractions > 9 * values;
}

}  // namespace cistern::data
