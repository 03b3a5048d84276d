// Brace patterns: ExpandBraces and SplitOutsideBraces.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "worker/data/storage/storage.h"

namespace cistern::data {
namespace {

constexpr size_t kMaxNames = 1000000;

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

// A bound of a range: a number, or a letter as its code.
struct Bound {
  int64_t value = 0;
  bool is_letter = false;
};

std::optional<Bound> ParseBound(absl::string_view text) {
  if (text.size() == 1 && absl::ascii_isalpha(static_cast<unsigned char>(text[0]))) {
    return Bound{text[0], true};
  }
  const absl::string_view digits = absl::StripPrefix(text, "-");
  Bound bound;
  const bool is_number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  constexpr int64_t kMost = int64_t{1} << 60;
  if (!is_number || !absl::SimpleAtoi(text, &bound.value)) return std::nullopt;
  if (bound.value > kMost || bound.value < -kMost) return std::nullopt;
  return bound;
}

// Whether a bound asks for numbers of equal width: 007, -05.
bool IsPadded(absl::string_view bound) {
  absl::ConsumePrefix(&bound, "-");
  return bound.size() > 1 && bound[0] == '0';
}

// The numbers of "000..127", those of "0..100..10" in steps, or letters; backwards if the first
// bound is the larger one. Both bounds are included.
absl::StatusOr<std::vector<std::string>> Range(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, "..");
  const auto bad = [&] {
    return BadPattern(text,
                      "a range has two numbers or two letters, and perhaps a step, as in "
                      "{000..127}, {0..100..10} and {a..d}");
  };
  if (parts.size() > 3) return bad();
  const std::optional<Bound> first = ParseBound(parts[0]), last = ParseBound(parts[1]);
  const std::optional<Bound> step = ParseBound(parts.size() == 3 ? parts[2] : "1");
  if (!first || !last || !step || first->is_letter != last->is_letter || step->is_letter) {
    return bad();
  }
  const int64_t by = std::max<int64_t>(1, std::abs(step->value));
  const int64_t distance = std::abs(last->value - first->value);
  if (static_cast<uint64_t>(distance / by) >= kMaxNames) {
    return BadPattern(text, "more than a million names");
  }
  const bool padded = IsPadded(parts[0]) || IsPadded(parts[1]);
  const int width = padded ? static_cast<int>(std::max(parts[0].size(), parts[1].size())) : 0;
  std::vector<std::string> names;
  for (int64_t way = 0; way <= distance; way += by) {
    const int64_t value = first->value + (last->value < first->value ? -way : way);
    names.push_back(first->is_letter ? std::string(1, static_cast<char>(value))
                                     : absl::StrFormat("%0*d", width, value));
  }
  return names;
}

// The alternatives inside a pair of braces. Braces without a choice stay, as in bash.
absl::StatusOr<std::vector<std::string>> Alternatives(absl::string_view inside) {
  const bool is_list = inside.find_first_of(",{") != absl::string_view::npos;
  if (absl::StrContains(inside, "..") && !is_list) return Range(inside);
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
  if (middles.size() > kMaxNames / ends.size()) {
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

}  // namespace cistern::data
