#include "common/base/sealed_json.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/hash_text.h"

namespace cistern {
namespace {

// The text after the last member of the object, and the text around the hash.
constexpr absl::string_view kBodyEnd = "\n}\n", kHashBegin = ",\n \"self_xxh3\": \"",
                            kHashEnd = "\"\n}\n", kSelfHash = "\"self_xxh3\"";
constexpr size_t kHashDigits = 16;

}  // namespace

std::string SealJson(absl::string_view json) {
  CISTERN_CHECK(absl::ConsumeSuffix(&json, kBodyEnd));
  std::string text = absl::StrCat(json, kHashBegin.substr(0, kHashBegin.find(kSelfHash)));
  const uint64_t hash = HashBytes(text);
  absl::StrAppend(&text, kHashBegin.substr(kHashBegin.find(kSelfHash)), HashText(hash), kHashEnd);
  return text;
}

absl::StatusOr<std::string> UnsealJson(absl::string_view text, uint64_t* hash) {
  absl::string_view head = text;
  const size_t tail_bytes = kHashDigits + kHashEnd.size();
  const bool ended = absl::ConsumeSuffix(&head, kHashEnd) && head.size() >= kHashDigits;
  const std::string digits(ended ? head.substr(head.size() - kHashDigits) : "");
  if (ended) head.remove_suffix(kHashDigits);
  if (!ended || !absl::ConsumeSuffix(&head, kHashBegin) || !absl::SimpleHexAtoi(digits, hash) ||
      HashText(*hash) != digits) {
    return absl::DataLossError(
        "it does not end with its own hash: it is another kind of file, or is truncated");
  }
  const size_t hashed = text.size() - tail_bytes - kHashBegin.size() + kHashBegin.find(kSelfHash);
  const uint64_t found = HashBytes(text.data(), hashed);
  if (found == *hash) return absl::StrCat(head, kBodyEnd);
  return absl::DataLossError(absl::StrCat("its own hash is ", HashText(found), ", not ", digits,
                                          " as written: it is corrupt; restore it from a copy"));
}

}  // namespace cistern
