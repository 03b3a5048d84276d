// Donefiles: how Paddle Serving's cube-transfer learns of a new version. A line per version, the
// newest last, with numbers as strings:
//
//   {"id":"1700000000","key":"1700000000","input":"/data/xbox/1700000000/base"}
//
// id: of this version; grows from line to line. key: the id of its base; a base's own id. input:
// the folder whose files, at any depth, are all SequenceFiles of the version.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/io/file_system.h"

namespace cistern {

// A larger id is malformed: the next one must exist, and be a signed number of 64 bits.
inline constexpr uint64_t kMaxId = uint64_t{1} << 62;

struct DoneLine {
  uint64_t id = 0, key = 0;
  std::string input;
};

// The text of a donefile, which may be a link (donefile_set.h); "" if there is none.
absl::StatusOr<std::string> ReadDonefile(FileSystem& files, const std::string& path);

// The last line of `text`; nullopt if there is none. path: of the donefile, for the error.
// kDataLoss: the last line is not of this form.
absl::StatusOr<std::optional<DoneLine>> LastLine(const std::string& text, const std::string& path);
// Appends a line to *text. kInvalidArgument: input is not UTF-8, so JSON cannot hold it.
absl::Status AppendLine(const DoneLine& line, std::string* text);

}  // namespace cistern
