#include "cli/terminal/aligned_text.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"

namespace cistern::cli {
namespace {

struct Column {
  size_t width = 0;
  bool number = true;
};

bool StartsAsNumber(const std::string& cell) {
  return cell.empty() || cell == "-" || std::isdigit(static_cast<unsigned char>(cell.front()));
}

std::vector<Column> Measure(const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns(rows.front().size());
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < columns.size(); ++c) {
      columns[c].width = std::max(columns[c].width, rows[r][c].size());
      if (r > 0 && !StartsAsNumber(rows[r][c])) columns[c].number = false;
    }
  }
  return columns;
}

}  // namespace

std::string AlignedText(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  const std::vector<Column> columns = Measure(rows);
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t c = 0; c < columns.size(); ++c) {
      const std::string padding(columns[c].width - row[c].size(), ' ');
      absl::StrAppend(&line, c == 0 ? "" : "  ", columns[c].number ? padding : "", row[c],
                      columns[c].number ? "" : padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace cistern::cli
