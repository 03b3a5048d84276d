// Brace patterns: ExpandBraces and SplitOutsideBraces.
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "worker/data/storage/storage.h"

namespace cistern {
namespace {

constexpr size_t kNamesMost = 1000000;

// The position of the brace that closes the one at `open`; npos if there is none.
size_t ClosingBrace(absl::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) return i;
  }
  return absl::string_view::npos;
}

absl::Status BadPattern(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("pattern '", text, "': ", why));
}

bool IsNumber(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return !text.empty();
}

// The numbers of "000..127"; both bounds are included.
absl::StatusOr<std::vector<std::string>> Range(absl::string_view text, size_t dots) {
  const absl::string_view first = text.substr(0, dots), last = text.substr(dots + 2);
  uint64_t from = 0, to = 0;
  if (!IsNumber(first) || !IsNumber(last) || !absl::SimpleAtoi(first, &from) ||
      !absl::SimpleAtoi(last, &to)) {
    return BadPattern(text, "a range has two numbers, as in {000..127}");
  }
  if (to < from) return BadPattern(text, "the range runs backwards");
  if (to - from >= kNamesMost) return BadPattern(text, "more than a million names");
  std::vector<std::string> numbers;
  const int width = first[0] == '0' || last[0] == '0' ? static_cast<int>(first.size()) : 0;
  for (uint64_t i = from; i <= to; ++i) numbers.push_back(absl::StrFormat("%0*d", width, i));
  return numbers;
}

// The alternatives inside a pair of braces. Braces without a choice stay, as in bash.
absl::StatusOr<std::vector<std::string>> Alternatives(absl::string_view inside) {
  const size_t dots = inside.find("..");
  const bool is_list = inside.find_first_of(",{") != absl::string_view::npos;
  if (dots != absl::string_view::npos && !is_list) return Range(inside, dots);
  const std::vector<std::string> parts = SplitOutsideBraces(inside);
  if (parts.size() == 1) {
    CISTERN_ASSIGN_OR_RETURN(std::vector<std::string> names, ExpandBraces(inside));
    for (std::string& name : names) name = absl::StrCat("{", name, "}");
    return names;
  }
  std::vector<std::string> names;
  for (const std::string& one : parts) {
    CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> more, ExpandBraces(one));
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

}  // namespace

std::vector<std::string> SplitOutsideBraces(absl::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth <= 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

absl::StatusOr<std::vector<std::string>> ExpandBraces(absl::string_view text) {
  const size_t open = text.find('{');
  if (open == absl::string_view::npos) return std::vector<std::string>{std::string(text)};
  const size_t close = ClosingBrace(text, open);
  if (close == absl::string_view::npos) return BadPattern(text, "a brace is not closed");
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> middles,
                           Alternatives(text.substr(open + 1, close - open - 1)));
  CISTERN_ASSIGN_OR_RETURN(const std::vector<std::string> ends,
                           ExpandBraces(text.substr(close + 1)));
  if (middles.size() > kNamesMost / ends.size()) {
    return BadPattern(text, "more than a million names");
  }
  std::vector<std::string> names;
  for (const std::string& middle : middles) {
    for (const std::string& end : ends) {
      names.push_back(absl::StrCat(text.substr(0, open), middle, end));
    }
  }
  return names;
}

}  // namespace cistern
