// Which commit a saved model was saved from.
//
// Servers write it into the JSON files of their parts (ModelPart::commit). A training's model does
// not hold it, because it has the same bytes whether or not the training kept commits, and whether
// or not it was interrupted. There it is in a file beside the folder:
//
//   NAME.commit.json   {"commit": 24, "manifest_xxh3": "16 hex digits", "model_xxh3": "..."}
//
// model_xxh3 is the hash of the model's JSON file: what was written beside another model does not
// count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/saved_model/model_folder.h"

namespace cistern {

struct SavedCommit {
  uint64_t number = 0;         // 0: not known, or no commit
  uint64_t manifest_xxh3 = 0;  // the hash of its manifest
  bool operator==(const SavedCommit&) const = default;
};

// Writes the file beside `folder`, or removes an older one if the number is 0. part: the only part
// of the model, which need not be in place yet.
absl::Status WriteCommitBeside(FileSystem& files, const std::string& folder, const ModelPart& part,
                               const SavedCommit& commit);
// Copies the file beside the model `from`, if it has one, for the copied model `to`.
absl::Status CopyCommitBeside(FileSystem& files, const std::string& from, const std::string& to);

// The commit of a whole model (ReadParts) whose rows are exactly those of the commit: all rows,
// with all digits. Without a number if that is not recorded: old programs did not record it.
SavedCommit CommitOfModel(FileSystem& files, const std::string& folder,
                          const std::vector<ModelPart>& parts);

}  // namespace cistern
