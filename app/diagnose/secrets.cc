#include "app/diagnose/secrets.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace cistern::app {
namespace {

constexpr char kRemoved[] = "[removed]";

bool IsNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

bool NamesASecret(absl::string_view name) {
  std::string plain = absl::AsciiStrToLower(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  std::replace(plain.begin(), plain.end(), '.', '_');
  constexpr std::array<absl::string_view, 6> kWords = {"password", "passwd",     "secret",
                                                       "token",    "credential", "access_key"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](absl::string_view word) { return absl::StrContains(plain, word); });
}

// How far a value reaches that begins at the start of `text`: to its closing quote, or to the next
// blank or separator.
size_t ValueBytes(absl::string_view text) {
  if (text.empty()) return 0;
  const char quote = text[0];
  if (quote != '"' && quote != '\'') {
    return std::min(text.find_first_of(" \t,;&)}]\"'"), text.size());
  }
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return text.size();
}

// Where the value of the name that ends at `at` begins; npos: it has none. is_flag: a blank is
// enough between them.
size_t ValueAt(absl::string_view line, size_t at, bool is_flag) {
  size_t end = at;
  if (end < line.size() && (line[end] == '"' || line[end] == '\'')) ++end;
  const size_t blanks = line.find_first_not_of(" \t", end);
  if (blanks == absl::string_view::npos) return blanks;
  if (line[blanks] != '=' && line[blanks] != ':') {
    return is_flag && blanks > end ? blanks : absl::string_view::npos;
  }
  return line.find_first_not_of(" \t", blanks + 1);
}

std::string WithoutNamedValues(absl::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    if (!IsNameByte(line[i])) {
      out += line[i++];
      continue;
    }
    const size_t begin = i;
    while (i < line.size() && IsNameByte(line[i])) ++i;
    const absl::string_view name = line.substr(begin, i - begin);
    absl::StrAppend(&out, name);
    if (!NamesASecret(name)) continue;
    const size_t value = ValueAt(line, i, absl::StartsWith(name, "--"));
    if (value == absl::string_view::npos) continue;
    absl::StrAppend(&out, line.substr(i, value - i), kRemoved);
    i = value + ValueBytes(line.substr(value));
  }
  return out;
}

std::string WithoutUrlUsers(const std::string& line) {
  std::string out = line;
  for (size_t at = out.find("://"); at != std::string::npos; at = out.find("://", at + 3)) {
    const size_t begin = at + 3;
    const size_t end = std::min(out.find_first_of(" \t/\"'", begin), out.size());
    const size_t user_end = out.substr(0, end).rfind('@');
    if (user_end == std::string::npos || user_end < begin) continue;
    out.replace(begin, user_end - begin, kRemoved);
  }
  return out;
}

}  // namespace

std::string WithoutSecrets(absl::string_view text) {
  std::string out;
  bool in_key = false;
  bool first = true;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, "-----BEGIN") && absl::StrContains(line, "PRIVATE KEY-----")) {
      absl::StrAppend(&out, first ? "" : "\n", kRemoved);
      first = false;
      in_key = !absl::StrContains(line, "-----END");
      continue;
    }
    if (in_key) {
      in_key = !absl::StrContains(line, "-----END");
      continue;
    }
    absl::StrAppend(&out, first ? "" : "\n", WithoutUrlUsers(WithoutNamedValues(line)));
    first = false;
  }
  return out;
}

}  // namespace cistern::app
