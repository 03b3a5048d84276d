// Reads a tar archive forward, member by member: POSIX ustar and pax, and GNU's long names. The
// archive may be compressed (byte_stream.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "worker/data/format/byte_stream.h"

namespace cistern::data {

inline constexpr size_t kTarBlock =
    512;  // bytes of a header; contents are padded to a multiple of it

// Threads: one at a time.
class TarArchive {
 public:
  // Larger members cannot be read (Contents), only passed over.
  static constexpr uint64_t kMaxContents = uint64_t{64} << 20;

  struct Member {
    std::string name;
    uint64_t bytes = 0;
  };

  // Errors: as ByteStream::Open.
  static absl::StatusOr<std::unique_ptr<TarArchive>> Open(const std::string& path);

  // Moves to the next regular file; false at the end of the archive. Folders, links and devices are
  // passed over. kDataLoss, with the byte: not a tar header, an archive that is cut short (its two
  // zero blocks are missing), or bytes after its end. kUnimplemented: a sparse file, or an archive
  // of several volumes.
  absl::StatusOr<bool> Next(Member* member);

  // The contents of the current member, valid until the next call. kDataLoss: the archive is cut
  // short inside it, or it is larger than kMaxContents.
  absl::StatusOr<absl::string_view> Contents();

  const std::string& path() const { return stream_->path(); }
  // The byte of the archive at which the current member begins, with the headers that describe it.
  uint64_t member_begin() const { return member_begin_; }
  // Continues at a byte at which a member begins; false, with no change, if the archive can only be
  // read forward.
  absl::StatusOr<bool> Seek(uint64_t member_begin);

 private:
  explicit TarArchive(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}
  struct Header {
    Member member;
    char type = '0';
  };
  // Passes over what is left of the current member.
  absl::Status PassOver();
  // Reads the next header; false at the end of the archive.
  absl::StatusOr<bool> ReadHeader(Header* header);
  // Checks that the archive's second zero block, and nothing but zeros, follows.
  absl::Status ReadEnd();
  // The contents of a member that describes the next one.
  absl::StatusOr<std::string> ReadDescription(const Header& header);
  absl::Status Damaged(absl::string_view what) const;
  absl::Status CutShort() const;

  const std::unique_ptr<ByteStream> stream_;
  uint64_t left_ = 0;   // bytes of the current member that were not consumed, padding included
  uint64_t bytes_ = 0;  // of the current member
  uint64_t member_begin_ = 0;
  bool ended_ = false;
};

}  // namespace cistern::data
