#include "worker/data/prepare/label_choice.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

namespace cistern {
namespace {

// The first name that the table has wins.
constexpr absl::string_view kUsualNames[] = {
    "label",         "click", "clicked",  "is_click",   "isclick",  "is_clicked", "clk",
    "target",        "y",     "class",    "outcome",    "response", "converted",  "conversion",
    "is_conversion", "buy",   "purchase", "is_purchase"};
constexpr size_t kNamesShown = 20;

bool IsZeroOrOne(const std::string& text) {
  double number = -1;
  return absl::SimpleAtod(text, &number) && (number == 0 || number == 1);
}

// Holds both 0 and 1, and nothing else.
bool IsBinary(const ColumnProfile& column) {
  return column.values.size() == 2 && IsZeroOrOne(column.values[0].first) &&
         IsZeroOrOne(column.values[1].first) && column.missing == 0 && column.max == 1 &&
         column.min == 0;
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
  return absl::InvalidArgumentError(absl::StrCat(profile.path, ": --label: there is no column '",
                                                 name, "'; the columns are ",
                                                 Quoted(profile.layout.columns)));
}

absl::StatusOr<size_t> FindColumn(const TableProfile& profile, std::string* note) {
  for (const absl::string_view usual : kUsualNames) {
    for (size_t i = 0; i < profile.columns.size(); ++i) {
      if (absl::AsciiStrToLower(profile.columns[i].name) != usual) continue;
      *note = "by its name";
      return i;
    }
  }
  std::vector<size_t> binary;
  for (size_t i = 0; i < profile.columns.size(); ++i) {
    if (IsBinary(profile.columns[i])) binary.push_back(i);
  }
  if (binary.size() == 1) {
    *note = "the only column of 0 and 1";
    return binary.front();
  }
  const std::vector<std::string> candidates = Candidates(profile);
  return absl::InvalidArgumentError(absl::StrCat(
      profile.path,
      ": which column is the label? None has a usual name (label, click, target, y), ",
      binary.empty() ? "and none holds 0 and 1 only"
                     : absl::StrCat(binary.size(), " hold 0 and 1 only"),
      candidates.empty() ? absl::StrCat("; the columns are ", Quoted(profile.layout.columns))
                         : absl::StrCat("; columns of two values: ", Quoted(candidates))));
}

// Decides which of two values is positive.
absl::Status ChoosePositive(const TableProfile& profile, const ColumnProfile& column,
                            LabelChoice* label) {
  if (IsBinary(column)) return absl::OkStatus();
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat(profile.path, ": the label column '", column.name, "' ", why));
  };
  if (column.distinct > 2) {
    const std::string what = column.distinct <= ColumnProfile::kFewValues
                                 ? absl::StrCat(column.distinct)
                                 : absl::StrCat("about ", column.distinct);
    return refuse(
        absl::StrCat("has ", what, " values, not 2: name the positive ones with --positive"));
  }
  const auto &a = column.values[0], &b = column.values[1];
  double x = 0, y = 0;
  if (absl::SimpleAtod(a.first, &x) && absl::SimpleAtod(b.first, &y)) {
    label->threshold = (x + y) / 2;
    absl::StrAppend(&label->note, label->note.empty() ? "" : "; ", "above ", *label->threshold,
                    " is positive");
    return absl::OkStatus();
  }
  label->positive = {a.second < b.second ? a.first : b.first};
  absl::StrAppend(&label->note, label->note.empty() ? "" : "; ", "'", label->positive[0],
                  "', the rarer value, is positive");
  return absl::OkStatus();
}

absl::Status CheckPositive(const TableProfile& profile, const ColumnProfile& column,
                           const LabelChoice& label) {
  for (const std::string& text : label.positive) {
    const auto has = [&](const auto& value) { return value.first == text; };
    const bool known =
        column.values.empty() || std::any_of(column.values.begin(), column.values.end(), has);
    if (known) continue;
    return absl::InvalidArgumentError(absl::StrCat(profile.path, ": --positive: the label column '",
                                                   column.name, "' never holds '", text, "'"));
  }
  return absl::OkStatus();
}

}  // namespace

bool LabelChoice::IsPositive(const std::string& text) const {
  if (!positive.empty()) return std::count(positive.begin(), positive.end(), text) > 0;
  double number = 0;
  return absl::SimpleAtod(text, &number) && number > threshold.value_or(0);
}

absl::StatusOr<LabelChoice> ChooseLabel(const TableProfile& profile, const std::string& name,
                                        const std::vector<std::string>& positive) {
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
  if (column.missing > 0) {
    return refuse(absl::StrCat("has no value in ", column.missing, " of ", profile.rows,
                               " rows: remove these rows"));
  }
  if (column.distinct < 2) {
    return refuse(
        absl::StrCat("is '", column.values[0].first, "' in every row: there is nothing to learn"));
  }
  label.positive = positive;
  if (positive.empty()) {
    CISTERN_RETURN_IF_ERROR(ChoosePositive(profile, column, &label));
  } else {
    CISTERN_RETURN_IF_ERROR(CheckPositive(profile, column, label));
  }
  return label;
}

}  // namespace cistern
