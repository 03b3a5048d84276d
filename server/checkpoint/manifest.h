// The manifest file: human-readable JSON that ends with a hash of itself.
//
//   {<proto/checkpoint.proto, Manifest, original field names>, "self_xxh3": "16 hex digits"}
//
// self_xxh3 is the XXH3-64 of every byte before the opening quote of "self_xxh3". The file is in
// manifest/; its name is the commit as 20 digits.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "proto/checkpoint.pb.h"

namespace cistern::server {

inline constexpr uint32_t kManifestFormat = 1;

struct ParsedManifest {
  v1::Manifest manifest;
  uint64_t self_xxh3 = 0;
};

// Equal manifests give equal bytes. manifest.format is written as kManifestFormat.
std::string FormatManifest(const v1::Manifest& manifest);
// kDataLoss: text that is not JSON, another format (the message names it), a field that is missing
// or out of range, a hash mismatch, an unusable schema, a file name that is not a plain name.
absl::StatusOr<ParsedManifest> ParseManifest(absl::string_view text);

// The checks of ParseManifest on the parsed message: every number in its range, every name plain.
// kDataLoss with the field.
absl::Status CheckManifest(const v1::Manifest& manifest);

// Converts numbers to names such as "00000000000000000012" and back; 0 for any other name.
std::string NumberName(uint64_t number);
uint64_t NumberOfName(absl::string_view name);

}  // namespace cistern::server
