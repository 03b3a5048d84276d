// Paths of object stores and HDFS in flags of commands that work on files of this machine.
//
//   --data, --input ...    read as streams by the command itself: not touched here
//   what a command reads   copied to a temporary folder, in which the command works
//   what it writes         written to that folder, and copied when the command has succeeded: all
//                          or nothing appears (worker/data/storage/remote_tree.h)
//   folders in which a program lives (--data-dir, publish --out)   refused
//
// The temporary folder is below $TMPDIR, or /tmp. It is removed at the end, unless what was written
// could not be copied, or a training stopped early: then the message names it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/terminal/report.h"
#include "common/base/status.h"

namespace cistern::cli {

// A flag or argument whose values are paths.
struct PathFlag {
  std::string name;  // "--out", or "MODEL"
  std::vector<std::string> values;
};

// Threads: one at a time.
class RemotePaths {
 public:
  // Replaces remote paths and file:// in `flags` by local paths, and copies what `command` reads
  // ("data pack"). kInvalidArgument: a path that must be on this machine. kAlreadyExists: what the
  // command would write is there. Others: as storage.h.
  static absl::StatusOr<std::unique_ptr<RemotePaths>> Take(const std::string& command,
                                                           std::vector<PathFlag>* flags,
                                                           Console* console);
  ~RemotePaths();
  RemotePaths(const RemotePaths&) = delete;
  RemotePaths& operator=(const RemotePaths&) = delete;

  // Copies what the command wrote. report: of the command; what it shows names the remote paths.
  absl::StatusOr<Report> Finish(absl::StatusOr<Report> report);

 private:
  struct Written {
    std::string local, remote;
  };
  RemotePaths(std::string command, Console* console);
  absl::StatusOr<std::string> Replaced(const std::string& flag, const std::string& path);
  absl::StatusOr<std::string> Fetched(const std::string& path);
  absl::StatusOr<std::string> NewPlace(const std::string& path);
  absl::Status Copy();

  const std::string command_;
  Console& console_;
  std::string folder_;  // empty: nothing is remote
  size_t places_ = 0;   // in folder_
  bool keep_ = false;   // folder_
  std::vector<Written> written_;
};

}  // namespace cistern::cli
