// What a server and the program that copies its state (cistern ckpt push) tell each other, in two
// small files of the state folder:
//
//   prepared-<rank>   by the server, if its commits wait for the copy: the files of the pass that
//   it
//                     has prepared last
//   copied            by the copying program: the files of this state that are in the copy, and the
//                     newest commit that is whole there
//
// As text, a line each: "commit 41", "file delta-41-3-0". Neither is synced: after a loss of power
// the server prepares anew, and the program looks at the copy.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern::server {

inline constexpr char kPreparedPrefix[] = "prepared-", kCopiedRecord[] = "copied";

struct CopyRecord {
  uint64_t commit = 0;  // prepared: that the files are for; copied: 0: none
  std::set<std::string> files;
};

std::string FormatCopyRecord(const CopyRecord& record);
// kDataLoss: it is none, or names a file with anything but a plain name.
absl::StatusOr<CopyRecord> ParseCopyRecord(absl::string_view text);

// name: of one of these, in the folder `state`. kNotFound: there is none.
absl::StatusOr<CopyRecord> ReadCopyRecord(FileSystem& files, const std::string& state,
                                          const std::string& name);
absl::Status WriteCopyRecord(FileSystem& files, const std::string& state, const std::string& name,
                             const CopyRecord& record);

}  // namespace cistern::server
