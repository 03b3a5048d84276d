// A growing folder as a feed: its files are messages, read in the order of their names.
//
// A file counts once it is complete. It must not change afterwards. Files may become complete in
// any order: a file is read even if files with later names were read before it, as long as it is
// among the newest kRecentFiles names. So the place holds the names that were read of these, and a
// name before which everything counts as read. Files that come later still are reported, not read.
//
// The folder may be a remote path (worker/data/storage/storage.h): its objects are the files.
//
// With several partitions, a file belongs to the one that the hash of its name says.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "worker/data/feed/feed.h"
#include "worker/data/feed/feed_source.h"
#include "worker/data/format/sample_reader.h"

namespace cistern::data {

// Names of files that a place holds.
inline constexpr size_t kRecentFiles = 1000;

// When a file is complete. Names that begin with "." or "_" and names that end as unfinished files
// do (.tmp, .part, .crc, .inprogress) never count, nor do files in folders with such names.
enum class FileCompletes {
  kByName,    // once it has its name: writers write elsewhere, and rename
  kByAge,     // once it was not written for a while
  kByMarker,  // once there is a file _SUCCESS beside it
};

struct FolderFeedOptions {
  std::string folder;  // read with the folders in it; or a remote path
  uint32_t partitions = 1;
  FileCompletes completes = FileCompletes::kByName;
  double age_seconds = 60;    // kByAge
  double look_seconds = 0.1;  // the least time between two looks at the folder
  // Opens a file of samples.
  std::function<absl::StatusOr<std::unique_ptr<SampleReader>>(const std::string& path)> open;
  // Whether an error of a file means that the rest of it is left out (cistern.on_bad_data); null:
  // never.
  std::function<bool(const std::string& path, const absl::Status& status)> skips;
  FeedStatus* status = nullptr;  // for notes; outlives the feed
};

// kInvalidArgument: the folder is not there, or is none. (A remote path may have no objects yet.)
absl::StatusOr<std::unique_ptr<FeedSource>> OpenFolderFeed(const FolderFeedOptions& options);

}  // namespace cistern::data
