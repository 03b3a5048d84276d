// JSON that ends with a hash of itself, so that a reader notices any change.
//
//   {
//    "commit": 12,
//    "self_xxh3": "16 hex digits"
//   }
//
// The hash covers every byte before the opening quote of the name self_xxh3.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"

namespace cistern {

// Adds the hash to an object with members that ends with "\n}\n", as protobuf prints it.
std::string SealJson(absl::string_view json);

// Returns the object without its hash, which goes to *hash. kDataLoss: there is none, or it does
// not match.
absl::StatusOr<std::string> UnsealJson(absl::string_view text, uint64_t* hash);

}  // namespace cistern
