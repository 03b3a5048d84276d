// The donefiles of an export: those of one dictionary, or of several, which are announced as one.
//
// One dictionary: its donefile is replaced by renaming. Several: their donefiles are links to files
// in a folder that a link names, and renaming that link is the one step that announces them all.
//
//   ROOT/deep/donefile/base.txt              link to ../../.donefiles/deep/base.txt
//   ROOT/wide/donefile/base.txt              link to ../../.donefiles/wide/base.txt
//   ROOT/.donefiles                          link to .donefiles-1795440000
//   ROOT/.donefiles-1795440000/deep/base.txt ...
//
// A donefile that is a file (of an older program, or edited in a way that replaced the link) counts
// as it is, and becomes a link when the next version is announced.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/io/file_system.h"
#include "worker/export/xbox/donefile.h"

namespace cistern {

// Threads: one at a time, under the lock of the export.
class DonefileSet {
 public:
  enum class Kind { kBase, kPatch };

  // tables: the dictionaries ROOT/TABLE of this export; empty: ROOT is the only one, called "".
  DonefileSet(FileSystem& files, std::string root, std::vector<std::string> tables);

  // Reads the donefiles, and removes what a killed export left of them.
  absl::Status Open();
  // The last line of a dictionary. kDataLoss: it is malformed.
  absl::StatusOr<std::optional<DoneLine>> Last(const std::string& table, Kind kind) const;
  // "ROOT/deep/donefile/base.txt".
  std::string PathOf(const std::string& table, Kind kind) const;

  // Appends a line for each dictionary of this export. Readers find all lines or none, and all are
  // on disk on return. After an error the lines may be there or not. id: of the version.
  absl::Status Announce(uint64_t id, Kind kind, const std::map<std::string, DoneLine>& lines);

 private:
  using Name = std::pair<std::string, Kind>;

  bool is_single() const { return tables_.size() == 1 && tables_[0].empty(); }
  absl::Status OpenSeveral();
  // Somebody has copied the export with a program that follows links: makes a link again, and
  // returns the folder that counts.
  absl::StatusOr<std::string> LinkCopiedSet();
  absl::Status ReadSet();
  absl::Status ReadFile(const Name& name);
  // Makes the donefiles links to files with the same content.
  absl::Status Link(uint64_t id, Kind kind);
  // Writes texts_ as ROOT/<folder>, and makes it the one that counts.
  absl::Status WriteSet(const std::string& folder);

  FileSystem& files_;
  const std::string root_;
  const std::vector<std::string> tables_;
  std::map<Name, std::string> texts_;  // of all dictionaries, also of other exports
  std::set<Name> linked_;
  std::string current_;  // the folder that counts; empty: none
};

}  // namespace cistern
