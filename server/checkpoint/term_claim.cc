#include "server/checkpoint/term_claim.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/hash_text.h"

namespace cistern::server {

std::string FormatClaim(const TermClaim& claim) {
  std::string text = absl::StrCat("commit ", claim.commit, "\n");
  if (claim.secret.has_value()) {
    absl::StrAppend(&text, "secret ", HashText(*claim.secret), "\n");
  }
  if (!claim.writer.empty()) absl::StrAppend(&text, "writer ", claim.writer, "\n");
  return text;
}

TermClaim ParseClaim(Term term, absl::string_view text) {
  constexpr size_t kSecretDigits = 16;
  TermClaim claim;
  claim.term = term;
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  lines.pop_back();  // after the last line break: nothing, or a truncated line
  for (absl::string_view line : lines) {
    uint64_t number = 0;
    if (absl::ConsumePrefix(&line, "commit ")) {
      if (absl::SimpleAtoi(line, &number)) claim.commit = number;
    } else if (absl::ConsumePrefix(&line, "secret ")) {
      if (line.size() == kSecretDigits && absl::SimpleHexAtoi(line, &number)) claim.secret = number;
    } else if (absl::ConsumePrefix(&line, "writer ")) {
      claim.writer = std::string(line);
    }
  }
  return claim;
}

}  // namespace cistern::server
