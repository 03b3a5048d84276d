// Text, numbers and tables as HTML.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cistern::report {

inline constexpr char kNoValueHtml[] = "\xE2\x80\x93";  // en dash

// `text` for element content and attribute values. Bytes that are not printable ASCII or UTF-8, and
// control characters, become U+FFFD: names and paths come from outside.
std::string EscapeHtml(absl::string_view text);

std::string CountHtml(uint64_t count);                             // "202,027"
std::string NumberHtml(std::optional<double> number, int digits);  // "0.984231"; "–" if absent
std::string PercentHtml(double share);                             // "12.3 %"
std::string SecondsHtml(double seconds);  // "4.7 s", "2 m 10 s", "1 h 05 m"
// A short number for an axis: "0.25", "1.2M", "200k".
std::string TickText(double number);

// A table whose columns are aligned by kind. It scrolls inside its own box on narrow screens.
//
// Threads: one at a time.
class HtmlTable {
 public:
  struct Column {
    std::string title;      // text
    bool number = true;     // aligned right, with digits of one width
    std::string hint = "";  // text, shown when the pointer rests on the title
  };
  explicit HtmlTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // cells: HTML, one per column. The first is the row's heading.
  void Add(const std::vector<std::string>& cells, absl::string_view row_class = "");
  bool empty() const { return rows_.empty(); }
  // caption: text, read by screen readers; shown above the table.
  std::string Html(absl::string_view caption) const;

 private:
  const std::vector<Column> columns_;
  std::string rows_;
};

// <section> with a heading. id, title: text. body: HTML.
std::string SectionHtml(absl::string_view id, absl::string_view title, const std::string& body);
// A muted paragraph of text.
std::string NoteHtml(absl::string_view text);

}  // namespace cistern::report
