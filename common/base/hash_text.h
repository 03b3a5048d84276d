// Hashes as text.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace cistern {

// 16 lowercase hexadecimal digits, as every file and message writes a 64-bit hash or secret.
inline std::string HashText(uint64_t hash) {
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

}  // namespace cistern
