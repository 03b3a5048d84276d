// Encodes and decodes what surrounds the blocks of a row file (row_file.h): header, footer and
// trailer. Plain functions of bytes: nothing is allocated from an unchecked count.
//
// Threads: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "server/checkpoint/row_file.h"

namespace cistern::server {

inline constexpr uint16_t kRowFileMajor = 1, kRowFileMinor = 0;
inline constexpr size_t kRowFileHeaderBytes = 64, kRowFileTrailerBytes = 32;
// Enough for 60 million blocks, 4 TB of rows. Limits what a flipped bit in the trailer makes a
// reader allocate.
inline constexpr uint64_t kMaxFooterBytes = uint64_t{1} << 30;

struct RowFileFooter {
  RowFileHeader header;
  std::vector<RowSection> sections;
  std::vector<uint64_t> block_hashes, block_bytes;
  // Of an indexed file: the first key of each block, and the filter of each section, without its
  // offset until the footer is decoded.
  std::vector<Key> first_keys;
  std::vector<FilterPlace> filters;
};

struct RowFileTrailer {
  uint64_t footer_offset = 0, footer_bytes = 0, footer_hash = 0;
};

std::string EncodeRowFileHeader(const RowFileHeader& header);
std::string EncodeRowFileFooter(const RowFileFooter& footer);
std::string EncodeRowFileTrailer(const RowFileTrailer& trailer);

// bytes: the last kRowFileTrailerBytes of a file of `file_bytes`. kDataLoss unless the trailer
// places the footer directly before itself.
absl::StatusOr<RowFileTrailer> DecodeRowFileTrailer(absl::string_view bytes, uint64_t file_bytes);

// kDataLoss: another major version, unknown flags, counts that do not fit, sections that do not
// belong to the header's server, blocks that are not contiguous from the header to footer_offset.
absl::StatusOr<RowFileFooter> DecodeRowFileFooter(absl::string_view bytes, uint64_t footer_offset);

}  // namespace cistern::server
