// The manifest as a file: JSON text that people can read, with a hash of itself at its end.
//
//   {<proto/checkpoint.proto, Manifest, original field names>, "self_xxh3": "16 hex digits"}
//
// self_xxh3 is the XXH3-64 of every byte before the word "self_xxh3" and its opening quote. The
// file's name is the commit as 20 digits, in manifest/.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "proto/checkpoint.pb.h"

namespace cistern {

inline constexpr uint32_t kManifestFormat = 1;

struct ParsedManifest {
  v1::Manifest manifest;
  uint64_t self_xxh3 = 0;
};

// The same manifest gives the same bytes. manifest.format is written as kManifestFormat.
std::string FormatManifest(const v1::Manifest& manifest);
// kDataLoss: not JSON, another format (says which), a field that is missing or out of its range, a
// hash that does not match, a schema that is not usable, a file name that is not a plain name.
absl::StatusOr<ParsedManifest> ParseManifest(absl::string_view text);

// What ParseManifest asks of a message that it has read: every number in its range, every name
// plain. kDataLoss with the field.
absl::Status CheckManifest(const v1::Manifest& manifest);

// Names: "00000000000000000012" and back; 0 if it is not such a name.
std::string NumberName(uint64_t number);
uint64_t NumberOfName(absl::string_view name);

}  // namespace cistern
