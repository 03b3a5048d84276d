#include "common/saved_model/rows_place.h"

#include <filesystem>

#include "absl/strings/numbers.h"

namespace cistern {

RowsPlace ParseRowsPlace(const std::string& text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0 || text[at - 1] == '/') return {text};
  const std::string digits = text.substr(at + 1);
  uint64_t commit = 0;
  if (digits.find_first_not_of("0123456789") != std::string::npos ||
      !absl::SimpleAtoi(digits, &commit) || commit == 0) {
    return {text};
  }
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(text, error))) return {text};
  return {text.substr(0, at), commit};
}

}  // namespace cistern
