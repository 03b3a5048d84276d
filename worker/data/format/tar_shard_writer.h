// Writes one tar shard: members of samples, in order (tar_sample.h).
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/io/file_system.h"
#include "common/io/new_file.h"

namespace cistern::data {

// Equal members give equal bytes: headers hold no time, user or group. The file gets its name when
// it is closed.
//
// Threads: one at a time.
class TarShardWriter {
 public:
  // Longer member names do not fit a plain ustar header.
  static constexpr size_t kMaxName = 100;
  static constexpr uint64_t kEndBytes = 1024;  // the two zero blocks that end an archive

  // files: outlives this. Creates the folder of `path`.
  static absl::StatusOr<std::unique_ptr<TarShardWriter>> Create(FileSystem& files,
                                                                const std::string& path);

  // name: 1 to kMaxName bytes. contents: below 8 GiB.
  absl::Status Append(absl::string_view name, absl::string_view contents);
  absl::Status Close();

  // Bytes of the file once it is closed.
  uint64_t bytes() const;
  // Bytes that a member with `size` bytes of contents takes.
  static uint64_t MemberBytes(uint64_t size);
  uint64_t xxh3() const { return file_->xxh3(); }  // after Close

 private:
  explicit TarShardWriter(std::unique_ptr<NewFile> file) : file_(std::move(file)) {}

  const std::unique_ptr<NewFile> file_;
  uint64_t bytes_ = 0;  // without the end of the archive
};

}  // namespace cistern::data
