#include "worker/report/html.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cistern::report {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// The length of the UTF-8 sequence at text[at]; 0 if there is none.
size_t SequenceAt(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  size_t length = 0;
  if (lead >= 0xC2 && lead < 0xE0) length = 2;
  if (lead >= 0xE0 && lead < 0xF0) length = 3;
  if (lead >= 0xF0 && lead < 0xF5) length = 4;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = at + 1; i < at + length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string html;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '&') {
      html += "&amp;";
    } else if (c == '<') {
      html += "&lt;";
    } else if (c == '>') {
      html += "&gt;";
    } else if (c == '"') {
      html += "&quot;";
    } else if (c == '\'') {
      html += "&#39;";
    } else if ((c >= ' ' && c < 0x7F) || c == '\n' || c == '\t') {
      html += c;
    } else if (const size_t length = SequenceAt(text, i); length > 0) {
      absl::StrAppend(&html, text.substr(i, length));
      i += length - 1;
    } else {
      html += kReplacement;
    }
  }
  return html;
}

std::string CountHtml(uint64_t count) {
  std::string digits = absl::StrCat(count);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string NumberHtml(std::optional<double> number, int digits) {
  if (!number || !std::isfinite(*number)) return kNoValueHtml;
  const std::string text = absl::StrFormat("%.*f", digits, *number);
  // A real minus sign is as wide as a digit.
  return text.front() == '-' ? "\xE2\x88\x92" + text.substr(1) : text;
}

std::string PercentHtml(double share) {
  if (!std::isfinite(share)) return kNoValueHtml;
  return absl::StrFormat("%.1f&nbsp;%%", 100 * share);
}

std::string SecondsHtml(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return kNoValueHtml;
  if (seconds < 59.95) return absl::StrFormat("%.1f&nbsp;s", seconds);
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 3600) return absl::StrFormat("%d&nbsp;m&nbsp;%02d&nbsp;s", whole / 60, whole % 60);
  return absl::StrFormat("%d&nbsp;h&nbsp;%02d&nbsp;m", whole / 3600, whole % 3600 / 60);
}

std::string TickText(double number) {
  const double size = std::abs(number);
  if (size >= 1e9) return absl::StrFormat("%gG", number / 1e9);
  if (size >= 1e6) return absl::StrFormat("%gM", number / 1e6);
  if (size >= 1e4) return absl::StrFormat("%gk", number / 1e3);
  return absl::StrFormat("%g", size < 1e-12 ? 0 : number);
}

void HtmlTable::Add(const std::vector<std::string>& cells, absl::string_view row_class) {
  absl::StrAppend(&rows_, row_class.empty() ? "<tr>" : "<tr class=\"", row_class,
                  row_class.empty() ? "" : "\">");
  for (size_t c = 0; c < columns_.size(); ++c) {
    const std::string& cell = c < cells.size() ? cells[c] : kNoValueHtml;
    const char* kind = columns_[c].number ? " class=\"n\"" : "";
    if (c == 0) {
      absl::StrAppend(&rows_, "<th scope=\"row\"", kind, ">", cell, "</th>");
    } else {
      absl::StrAppend(&rows_, "<td", kind, ">", cell, "</td>");
    }
  }
  rows_ += "</tr>\n";
}

std::string HtmlTable::Html(absl::string_view caption) const {
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n";
  if (!caption.empty()) absl::StrAppend(&html, "<caption>", EscapeHtml(caption), "</caption>\n");
  html += "<thead><tr>";
  for (const Column& column : columns_) {
    absl::StrAppend(&html, "<th scope=\"col\"", column.number ? " class=\"n\"" : "");
    if (!column.hint.empty()) absl::StrAppend(&html, " title=\"", EscapeHtml(column.hint), "\"");
    absl::StrAppend(&html, ">", EscapeHtml(column.title), "</th>");
  }
  absl::StrAppend(&html, "</tr></thead>\n<tbody>\n", rows_, "</tbody></table></div>\n");
  return html;
}

std::string SectionHtml(absl::string_view id, absl::string_view title, const std::string& body) {
  return absl::StrCat("<section id=\"", EscapeHtml(id), "\">\n<h2>", EscapeHtml(title), "</h2>\n",
                      body, "</section>\n");
}

std::string NoteHtml(absl::string_view text) {
  return absl::StrCat("<p class=\"note\">", EscapeHtml(text), "</p>\n");
}

}  // namespace cistern::report
