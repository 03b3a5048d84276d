#include "worker/data/prepare/label_heads.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "worker/data/recipe/value_text.h"

namespace cistern::data {
namespace {

constexpr size_t kMaxShown = 40;  // bytes of a text in a message

absl::Status Refuse(const TableProfile& profile, const std::string& why) {
  return WithOptions(absl::InvalidArgumentError(absl::StrCat(profile.path, ": ", why)), {"label"});
}

absl::StatusOr<LabelChoice> ChooseHead(const TableProfile& profile, const std::string& name) {
  const std::vector<std::string>& names = profile.layout.columns;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return Refuse(profile, absl::StrCat("there is no column '", name, "'; the columns are ",
                                        absl::StrJoin(names, ", ")));
  }
  LabelChoice head;
  head.column = static_cast<size_t>(found - names.begin());
  const ColumnProfile& column = profile.columns[head.column];
  for (const auto& [text, count] : column.values) {
    double number = 0;
    const bool is_number = ReadNumber(text, &number) == NumberKind::kFinite;
    if (is_number && number == -1) continue;
    if (!is_number || (number != 0 && number != 1)) {
      return Refuse(profile,
                    absl::StrCat("the label '", name, "' holds '", text.substr(0, kMaxShown),
                                 "', but one of several labels is 1 or 0, and -1 or empty "
                                 "where it is not known"));
    }
    (number == 1 ? head.positive : head.negative).push_back(text);
  }
  if (column.values.empty()) {
    return Refuse(profile, absl::StrCat("the label '", name, "' has ",
                                        column.distinct == 0
                                            ? "no value"
                                            : absl::StrCat("about ", column.distinct, " values"),
                                        ", but one of several labels is 1 or 0, and -1 or empty "
                                        "where it is not known"));
  }
  if (head.positive.empty() || head.negative.empty()) {
    return Refuse(profile, absl::StrCat("the label '", name, "' is ",
                                        head.positive.empty() ? "never 1" : "never 0",
                                        ": there is nothing to learn, so leave it out"));
  }
  const HeadRows rows = RowsOf(profile, head);
  if (rows.known < profile.rows) {
    head.note = absl::StrCat("not known in ", profile.rows - rows.known, " rows");
  }
  return head;
}

bool Has(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

}  // namespace

std::vector<std::string> LabelNames(absl::Span<const std::string> columns,
                                    const std::string& given) {
  if (given.empty()) return {};
  if (std::find(columns.begin(), columns.end(), given) != columns.end()) return {given};
  std::vector<std::string> names;
  for (const absl::string_view name : absl::StrSplit(given, ',')) {
    names.emplace_back(absl::StripAsciiWhitespace(name));
  }
  return names;
}

absl::StatusOr<std::vector<LabelChoice>> ChooseHeads(const TableProfile& profile,
                                                     absl::Span<const std::string> names) {
  std::vector<LabelChoice> heads;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::find(names.begin(), names.begin() + i, names[i]) != names.begin() + i) {
      return Refuse(profile, absl::StrCat("the label '", names[i], "' is named twice"));
    }
    CISTERN_ASSIGN_OR_RETURN(heads.emplace_back(), ChooseHead(profile, names[i]));
  }
  return heads;
}

HeadRows RowsOf(const TableProfile& profile, const LabelChoice& head) {
  HeadRows rows;
  for (const auto& [text, count] : profile.columns[head.column].values) {
    const bool positive = Has(head.positive, text);
    if (positive) rows.positive += count;
    if (positive || Has(head.negative, text)) rows.known += count;
  }
  return rows;
}

BrokenOrder OrderOf(const TableProfile& profile, const LabelChoice& earlier,
                    const LabelChoice& later) {
  BrokenOrder order;
  for (const std::vector<std::string>& row : profile.sample) {
    if (!later.IsPositive(row[later.column])) continue;
    ++order.of;
    order.rows += Has(earlier.negative, row[earlier.column]);
  }
  return order;
}

}  // namespace cistern::data
