#include "common/base/nearest_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace cistern {
namespace {

constexpr size_t kMaxShown = 100;     // candidates
constexpr size_t kLongestWord = 256;  // to compare: the time grows with the product of the lengths

}  // namespace

size_t EditDistance(const std::string& a, const std::string& b) {
  const size_t n = b.size();
  // Three rows of the table suffice: a swap looks back two rows.
  std::vector<size_t> before(n + 1), last(n + 1), row(n + 1);
  for (size_t j = 0; j <= n; ++j) row[j] = j;
  const auto same = [](char x, char y) { return absl::ascii_tolower(x) == absl::ascii_tolower(y); };
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= n; ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + !same(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[n];
}

std::string NearestName(const std::string& word, const std::vector<std::string>& candidates) {
  size_t best = std::max<size_t>(2, word.size() / 3) + 1;
  std::string nearest;
  if (word.size() > kLongestWord) return nearest;
  for (const std::string& candidate : candidates) {
    // The distance is at least the difference in length.
    if (candidate.size() >= word.size() + best || word.size() >= candidate.size() + best) continue;
    const size_t distance = EditDistance(word, candidate);
    // Names that share no character are not alike, however short they are.
    if (distance >= best || distance >= std::max(word.size(), candidate.size())) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string Suggest(const std::string& word, const std::vector<std::string>& candidates) {
  if (candidates.empty()) return "";
  const std::string nearest = NearestName(word, candidates);
  if (!nearest.empty()) return absl::StrCat("; did you mean '", nearest, "'?");
  if (candidates.size() <= kMaxShown) {
    return absl::StrCat("; known: ", absl::StrJoin(candidates, ", "));
  }
  const auto first = absl::MakeConstSpan(candidates).subspan(0, kMaxShown);
  return absl::StrCat("; known: ", absl::StrJoin(first, ", "), " and ",
                      candidates.size() - kMaxShown, " more");
}

}  // namespace cistern
