// The newest line of a donefile.
#pragma once

#include "worker/export/xbox/donefile.h"

namespace cistern {

inline absl::StatusOr<std::optional<DoneLine>> LastDone(FileSystem& files,
                                                        const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadDonefile(files, path));
  return LastLine(text, path);
}

}  // namespace cistern
