// The JSON file that an export writes beside its files: what it was made from, and a hash of each
// file.
//
//   {"format": 1, "form": "xbox", "commit": 12, "manifest_xxh3": "16 hex digits", "pass": 12, ...}
//
// The fields that follow belong to the form. commit is 0, and manifest_xxh3 absent, if the state is
// not a durable commit.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/base/hash_text.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/export/committed_model.h"

namespace cistern {

using ExportManifest = nlohmann::ordered_json;

// The fields above.
ExportManifest ManifestOf(const std::string& form, const CommittedVersion& version);

// Writes the manifest, which contains UTF-8 only, as one new file.
absl::Status WriteManifest(FileSystem& files, const std::string& path,
                           const ExportManifest& manifest);

// OK if `folder` may be replaced by an export of this form: there is none, it is empty, or it holds
// the manifest `name` of an earlier export of the same form. kAlreadyExists if it holds anything
// else.
absl::Status CheckReplaceable(FileSystem& files, const std::string& folder, const std::string& name,
                              const std::string& form);

}  // namespace cistern
