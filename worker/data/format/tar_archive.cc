#include "worker/data/format/tar_archive.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "worker/data/format/file_list.h"

namespace cistern::data {
namespace {

constexpr uint64_t kMaxMemberBytes = uint64_t{1} << 60;
constexpr uint64_t kMaxDescription = uint64_t{1} << 20;  // a pax header or a long name

// The fields of a header block: offset and size.
struct Field {
  size_t at, size;
};
constexpr Field kName = {0, 100}, kSize = {124, 12}, kChecksum = {148, 8}, kType = {156, 1},
                kMagic = {257, 5}, kPrefix = {345, 155};

absl::string_view Text(const char* block, Field field) {
  const char* const begin = block + field.at;
  return {begin, strnlen(begin, field.size)};
}

bool IsZero(const char* bytes, size_t size) {
  return std::all_of(bytes, bytes + size, [](char c) { return c == 0; });
}

// A number in octal, or, with the high bit of the first byte set, in base 256 (GNU).
std::optional<uint64_t> Number(const char* block, Field field) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block + field.at);
  uint64_t number = 0;
  if (bytes[0] == 0x80) {
    for (size_t i = 1; i < field.size; ++i) {
      if (number > (kMaxMemberBytes >> 8)) return std::nullopt;
      number = number << 8 | bytes[i];
    }
    return number;
  }
  size_t i = 0;
  while (i < field.size && bytes[i] == ' ') ++i;
  for (; i < field.size && bytes[i] != ' ' && bytes[i] != 0; ++i) {
    if (bytes[i] < '0' || bytes[i] > '7' || number > kMaxMemberBytes) return std::nullopt;
    number = number << 3 | static_cast<uint64_t>(bytes[i] - '0');
  }
  return number;
}

// The sum of the block's bytes with spaces in place of the checksum. Old programs added signed
// characters.
bool ChecksumMatches(const char* block) {
  const std::optional<uint64_t> expected = Number(block, kChecksum);
  int64_t plain = 0, with_signs = 0;
  for (size_t i = 0; i < kTarBlock; ++i) {
    const bool blank = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    const char c = blank ? ' ' : block[i];
    plain += static_cast<unsigned char>(c);
    with_signs += static_cast<signed char>(c);
  }
  return expected && (*expected == static_cast<uint64_t>(plain) ||
                      *expected == static_cast<uint64_t>(with_signs));
}

// POSIX: a member of an unknown type is a file. Links, devices and folders are not, nor are GNU's
// listings of folders and volume names, and Solaris's attributes.
bool IsFile(char type, uint64_t bytes) {
  if (type == '0' || type == '\0' || type == '7') return true;
  constexpr absl::string_view kOthers = "123456DVNAE";
  return bytes > 0 && kOthers.find(type) == absl::string_view::npos;
}

// What members of other types say about the next file.
struct Description {
  bool has_name = false, has_size = false, is_sparse = false;
  std::string name;
  uint64_t size = 0;
};

// Takes "path" and "size" from pax records: "LENGTH KEY=VALUE\n". False if they are malformed.
bool TakePax(absl::string_view records, Description* description) {
  while (!records.empty() && records[0] != '\0') {
    const size_t space = records.find(' ');
    size_t length = 0;
    if (space == absl::string_view::npos || !absl::SimpleAtoi(records.substr(0, space), &length) ||
        length <= space + 1 || length > records.size() || records[length - 1] != '\n') {
      return false;
    }
    const absl::string_view record = records.substr(space + 1, length - space - 2);
    const size_t equals = record.find('=');
    if (equals == absl::string_view::npos) return false;
    const absl::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") {
      description->has_name = true;
      description->name = std::string(value);
    } else if (key == "size") {
      description->has_size = true;
      if (!absl::SimpleAtoi(value, &description->size)) return false;
    } else if (absl::StartsWith(key, "GNU.sparse.")) {
      description->is_sparse = true;
    }
    records.remove_prefix(length);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TarArchive>> TarArchive::Open(const std::string& path) {
  CISTERN_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream, ByteStream::Open(path));
  return std::unique_ptr<TarArchive>(new TarArchive(std::move(stream)));
}

absl::StatusOr<bool> TarArchive::Next(Member* member) {
  Description next;
  bool is_described = false;
  while (true) {
    CISTERN_RETURN_IF_ERROR(PassOver());
    if (!is_described) member_begin_ = stream_->offset();
    Header header;
    CISTERN_ASSIGN_OR_RETURN(const bool found, ReadHeader(&header));
    if (!found) return false;
    const bool describes = absl::string_view("xXLKg").find(header.type) != absl::string_view::npos;
    if (describes) {
      CISTERN_ASSIGN_OR_RETURN(const std::string text, ReadDescription(header));
      if (header.type == 'L') {
        next.has_name = true;
        next.name = text.substr(0, text.find('\0'));
      }
      const bool is_pax = header.type == 'x' || header.type == 'X';  // X: Solaris
      if (is_pax && !TakePax(text, &next)) {
        return Damaged("a pax header is malformed");
      }
      is_described = true;
      continue;
    }
    if (next.has_size) header.member.bytes = next.size;
    if (header.member.bytes > kMaxMemberBytes) return Damaged("a member's size is absurd");
    const bool has_no_bytes = header.type >= '1' && header.type <= '6';
    bytes_ = has_no_bytes ? 0 : header.member.bytes;
    left_ = (bytes_ + kTarBlock - 1) / kTarBlock * kTarBlock;
    if (next.has_name) header.member.name = std::move(next.name);
    if (next.is_sparse || header.type == 'S' || header.type == 'M') {
      return absl::UnimplementedError(absl::StrCat(
          path(), ": member '", header.member.name, "' is ",
          header.type == 'M' ? "a part of an archive of several volumes: join the volumes"
                             : "a sparse file: write the archive without tar's option for those"));
    }
    if (IsFile(header.type, bytes_)) {
      *member = std::move(header.member);
      return true;
    }
    next = {};
    is_described = false;
  }
}

absl::StatusOr<bool> TarArchive::Seek(uint64_t member_begin) {
  CISTERN_ASSIGN_OR_RETURN(const bool found, stream_->Seek(member_begin));
  if (found) {
    left_ = bytes_ = 0;
    ended_ = false;
  }
  return found;
}

absl::StatusOr<absl::string_view> TarArchive::Contents() {
  if (bytes_ > kMaxContents) {
    return Damaged(
        absl::StrCat("a member has ", bytes_, " bytes; at most ", kMaxContents, " can be read"));
  }
  CISTERN_RETURN_IF_ERROR(stream_->Fill(bytes_));
  if (stream_->available() < bytes_) return CutShort();
  return absl::string_view(stream_->data(), bytes_);
}

absl::Status TarArchive::PassOver() {
  CISTERN_ASSIGN_OR_RETURN(const uint64_t done, stream_->Skip(left_));
  if (done < left_) return CutShort();
  left_ = bytes_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> TarArchive::ReadHeader(Header* header) {
  if (ended_) return false;
  CISTERN_RETURN_IF_ERROR(stream_->Fill(kTarBlock));
  if (stream_->available() < kTarBlock) return CutShort();
  const char* const block = stream_->data();
  if (IsZero(block, kTarBlock)) {
    ended_ = true;
    CISTERN_RETURN_IF_ERROR(ReadEnd());
    return false;
  }
  const std::optional<uint64_t> size = Number(block, kSize);
  if (!ChecksumMatches(block) || !size) {
    return Damaged(absl::StrCat("no tar header is here", KindHint({block, kTarBlock})));
  }
  header->type = block[kType.at];
  header->member = {std::string(Text(block, kName)), *size};
  const absl::string_view prefix = Text(block, kPrefix);
  const bool is_ustar = std::memcmp(block + kMagic.at, "ustar\0", kMagic.size + 1) == 0;
  if (is_ustar && !prefix.empty()) {
    header->member.name = absl::StrCat(prefix, "/", header->member.name);
  }
  stream_->Consume(kTarBlock);
  return true;
}

absl::Status TarArchive::ReadEnd() {
  while (true) {
    CISTERN_RETURN_IF_ERROR(stream_->Fill(kTarBlock));
    if (stream_->available() == 0) return absl::OkStatus();
    if (!IsZero(stream_->data(), stream_->available())) {
      return Damaged(
          "bytes follow the end of the archive: concatenated archives must be files of their own");
    }
    stream_->Consume(stream_->available());
  }
}

absl::StatusOr<std::string> TarArchive::ReadDescription(const Header& header) {
  if (header.member.bytes > kMaxDescription) return Damaged("a long name or pax header is absurd");
  bytes_ = header.member.bytes;
  left_ = (bytes_ + kTarBlock - 1) / kTarBlock * kTarBlock;
  CISTERN_ASSIGN_OR_RETURN(const absl::string_view text, Contents());
  return std::string(text);
}

absl::Status TarArchive::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path(), ": at byte ", stream_->offset(), ": ", what,
                                          ": the file is corrupt, or not a tar archive"));
}

absl::Status TarArchive::CutShort() const {
  return WithKind(
      absl::DataLossError(absl::StrCat(
          path(), " is cut short: it ends at byte ", stream_->offset() + stream_->available(),
          bytes_ > 0 ? ", inside a member"
                     : ", without the two zero blocks that end a tar archive")),
      ErrorKind::kCutShort);
}

}  // namespace cistern::data
