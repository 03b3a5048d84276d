#include "worker/data/prepare/column_list.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace cistern::data {
namespace {

constexpr uint32_t kColumnsMax = 100000;

// Splits "C12" into "C" and 12.
bool SplitNumber(absl::string_view name, absl::string_view* stem, uint32_t* number) {
  size_t digits = 0;
  while (digits < name.size() && absl::ascii_isdigit(name[name.size() - 1 - digits])) ++digits;
  *stem = name.substr(0, name.size() - digits);
  return absl::SimpleAtoi(name.substr(stem->size()), number);
}

}  // namespace

std::vector<std::string> WithMembers(const std::vector<std::string>& names,
                                     const std::vector<std::string>& columns) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    const size_t before = all.size();
    const bool is_column = std::find(columns.begin(), columns.end(), name) != columns.end();
    for (const std::string& column : columns) {
      if (!is_column && absl::StartsWith(column, absl::StrCat(name, "."))) all.push_back(column);
    }
    if (all.size() == before) all.push_back(name);
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> ExpandColumns(const std::vector<std::string>& items) {
  std::vector<std::string> names;
  for (const std::string& item : items) {
    const size_t dots = item.find("..");
    if (dots == std::string::npos) {
      names.push_back(item);
      continue;
    }
    absl::string_view first_stem, last_stem;
    uint32_t first = 0, last = 0;
    const absl::string_view text = item;
    if (!SplitNumber(text.substr(0, dots), &first_stem, &first) ||
        !SplitNumber(text.substr(dots + 2), &last_stem, &last) || first_stem != last_stem ||
        first > last || last - first >= kColumnsMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item, "' is not a range of columns: write it as C1..C26"));
    }
    for (uint64_t i = first; i <= last; ++i) names.push_back(absl::StrCat(first_stem, i));
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> ColumnsOf(const TextFormatEntry& format,
                                                   const std::vector<std::string>& given) {
  return ExpandColumns(*format.columns == '\0' ? given : absl::StrSplit(format.columns, ','));
}

}  // namespace cistern::data
