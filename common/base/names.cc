#include "common/base/names.h"

#include "absl/strings/ascii.h"

namespace cistern {

absl::Status CheckName(const std::string& name) {
  bool good = !name.empty() && name.size() <= 128 && absl::ascii_isalnum(name[0]);
  for (unsigned char c : name) {
    good = good && (absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-');
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", name,
                   "' cannot be a name; use 1 to 128 letters, digits, '.', '_' or '-', "
                   "beginning with a letter or a digit"));
}

}  // namespace cistern
